// Names of Python functions in perf-PID.map and jit-PID.dump: CPython's trampolines (python3 -X perf).
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace ptkit::code::symbol {

// "py::f:/srv/file.py"; "py::f:" in redacted recordings. "py::f::g" is of C++.
[[nodiscard]] constexpr bool is_python_name(std::string_view raw_name) noexcept {
  if (!raw_name.starts_with("py::")) return false;
  const std::size_t colon = raw_name.find(':', 4);
  return colon != std::string_view::npos && !raw_name.substr(colon).starts_with("::");
}

// "f (file.py)", or "f (json/__init__.py)" where the file's name alone says little; "f" without a file.
// nullopt: another name.
[[nodiscard]] std::optional<std::string> python_name(std::string_view raw_name);

}  // namespace ptkit::code::symbol
