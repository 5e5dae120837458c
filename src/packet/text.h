// Packets as text, in the format of libipt's ptdump.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/digits.h"
#include "packet/packet.h"

namespace ptkit::packet {

// Text of a few words in memory of its own: nothing is allocated.
class ShortText {
 public:
  ShortText(std::string_view text = {}) noexcept { add(text); }
  ShortText(const char* text) noexcept : ShortText(std::string_view(text)) {}

  ShortText& add(std::string_view text) noexcept {
    size_ += text.copy(end(), left());
    return *this;
  }
  ShortText& add(char letter) noexcept { return add({&letter, 1}); }
  ShortText& hex(std::uint64_t value, unsigned digits = 1) noexcept {
    if (left() >= base::kMostDigits)
      size_ += static_cast<std::size_t>(base::put_hex(end(), value, digits) - end());
    return *this;
  }
  ShortText& decimal(std::uint64_t value) noexcept {
    if (left() >= base::kMostDigits)
      size_ += static_cast<std::size_t>(base::put_decimal(end(), value) - end());
    return *this;
  }
  // A letter for each of the low bits, from the lowest one on.
  ShortText& bits(std::uint64_t value, std::size_t count, char zero, char one) noexcept {
    const std::size_t most = count < left() ? count : left();
    for (std::size_t bit = 0; bit < most; ++bit) end()[bit] = (value >> bit & 1U) != 0 ? one : zero;
    size_ += most;
    return *this;
  }

  [[nodiscard]] const char* data() const noexcept { return text_.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  operator std::string_view() const noexcept { return {text_.data(), size_}; }

 private:
  [[nodiscard]] char* end() noexcept { return text_.data() + size_; }
  [[nodiscard]] std::size_t left() const noexcept { return kMost - size_; }

  static constexpr std::size_t kMost = 88;     // the longest are 64 bits of a TNT packet
  static constexpr std::size_t kPadding = 32;  // bytes that can be read after the text

  std::array<char, kMost + kPadding> text_;
  std::size_t size_ = 0;
};

struct DumpText {
  std::string_view opcode;  // "tip.pge"
  ShortText payload;        // "3: 0000000000401000"
  ShortText detail;         // decoded payload of some packets: "cr3 0000000000afafa0"
};

[[nodiscard]] DumpText dump_text(const Packet& packet);

}  // namespace ptkit::packet
