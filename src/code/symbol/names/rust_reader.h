// Numbers and identifiers in names of Rust's v0 scheme. Internal to src/code/symbol.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "code/symbol/names/letters.h"

namespace ptkit::code::symbol {

struct RustIdentifier {
  std::uint64_t disambiguator = 0;
  std::string text;
};

// After a failure, it reads nothing.
class RustReader {
 public:
  explicit RustReader(std::string_view mangled) noexcept : mangled_(mangled) {}

 protected:
  [[nodiscard]] char next();
  bool eat(char letter);
  [[nodiscard]] std::uint64_t base_62();
  std::uint64_t optional_base_62(char tag);
  [[nodiscard]] RustIdentifier identifier();
  [[nodiscard]] std::string plain_identifier();
  // Hexadecimal digits up to "_", and their value if it fits.
  [[nodiscard]] std::string_view hexadecimal(std::uint64_t& value);

  std::string_view mangled_;  // behind "_R": references count from here
  std::size_t at_ = 0;
  bool failed_ = false;
};

}  // namespace ptkit::code::symbol
