// Parses the kernel's symbols in the format of /proc/kallsyms.
#pragma once

#include <cstdint>
#include <string_view>

namespace ptkit::code::image {

struct KernelSymbol {
  std::uint64_t address = 0;
  char type = 0;
  std::string_view name;
  std::string_view module;  // "[ext4]"; empty: the kernel itself

  [[nodiscard]] bool is_code() const noexcept {
    return std::string_view("tTwW").find(type) != std::string_view::npos;
  }
};

// Iterates over the symbols of a list and skips invalid lines. A list has more than 100 000 symbols, so names
// are views into the text.
class KernelSymbols {
 public:
  explicit KernelSymbols(std::string_view text) : rest_(text) {}
  [[nodiscard]] bool next(KernelSymbol& out) noexcept;  // false: the list has ended

 private:
  std::string_view rest_;
};

}  // namespace ptkit::code::image
