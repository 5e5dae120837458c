// Reads the encodings of DWARF frame data: LEB128 numbers and encoded pointers (DW_EH_PE_*). Internal to
// src/code/bounds.
#pragma once

#include <cstdint>
#include <optional>

#include "base/bytes.h"

namespace ptkit::code::bounds {

// Pointer encodings: the low 4 bits say how the value is stored, the next 3 bits what it is relative to. LSB
// Core 5.0, section "DWARF Exception Header Encoding".
inline constexpr std::uint8_t kOmitted = 0xff;
inline constexpr std::uint8_t kFormat = 0x0f;
inline constexpr std::uint8_t kBase = 0x70;
inline constexpr std::uint8_t kFromField = 0x10;  // DW_EH_PE_pcrel: relative to the address of the value
inline constexpr std::uint8_t kIndirect = 0x80;

// Reads past the end give 0 and make good() false. `address` is the link address of the first byte.
class Cursor {
 public:
  Cursor(base::Bytes bytes, std::uint64_t address, bool is_64_bit) noexcept
      : bytes_(bytes), address_(address), is_64_bit_(is_64_bit) {}

  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] std::size_t at() const noexcept { return at_; }
  [[nodiscard]] std::size_t left() const noexcept { return bytes_.size() - at_; }
  [[nodiscard]] std::uint64_t address() const noexcept { return address_ + at_; }
  void fail() noexcept { good_ = false; }

  template <std::size_t N>
  std::uint64_t fixed() noexcept {
    if (left() < N) good_ = false;
    if (!good_) return 0;
    const std::uint64_t value = base::load_le<N>(bytes_.data() + at_);
    at_ += N;
    return value;
  }
  std::uint8_t byte() noexcept { return static_cast<std::uint8_t>(fixed<1>()); }
  void skip(std::uint64_t count) noexcept {
    if (count > left()) good_ = false;
    if (good_) at_ += static_cast<std::size_t>(count);
  }
  // The next `count` bytes, which this cursor skips.
  Cursor part(std::uint64_t count) noexcept;

  // Bits above the 64th are dropped.
  std::uint64_t uleb() noexcept { return leb(false); }
  // The value of an encoded number, without what it is relative to.
  std::uint64_t value(std::uint8_t encoding) noexcept;
  // An encoded link address. nullopt: it is omitted or null, or known at run time only.
  std::optional<std::uint64_t> pointer(std::uint8_t encoding) noexcept;

 private:
  std::uint64_t leb(bool is_signed) noexcept;

  base::Bytes bytes_;
  std::uint64_t address_;
  std::size_t at_ = 0;
  bool is_64_bit_;
  bool good_ = true;
};

// Appends an unsigned LEB128 number.
template <typename Out>
void append_uleb(Out& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) out.push_back(static_cast<std::uint8_t>(value | 0x80U));
  out.push_back(static_cast<std::uint8_t>(value));
}

}  // namespace ptkit::code::bounds
