// Which symbols need not be demangled to know that they do not have a name. Internal to src/code/symbol.
#pragma once

#include <string>
#include <string_view>

namespace ptkit::code::symbol {

class NameFilter {
 public:
  static NameFilter of_name(std::string_view name);
  static NameFilter of_pattern(std::string_view pattern);

  // False: neither the symbol's raw name nor any form of the demangled one is the name, has it as its last
  // part, or matches the pattern.
  [[nodiscard]] bool admits(std::string_view raw_name) const noexcept;

 private:
  explicit NameFilter(std::string_view fixed);

  std::string letters_;  // that each such name has; empty: any name may be one
};

}  // namespace ptkit::code::symbol
