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
    std::array<char, base::kMostDigits> text;
    return add({text.data(), base::put_hex(text.data(), value, digits)});
  }
  ShortText& decimal(std::uint64_t value) noexcept {
    std::array<char, base::kMostDigits> text;
    return add({text.data(), base::put_decimal(text.data(), value)});
  }

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  operator std::string_view() const noexcept { return {text_.data(), size_}; }

 private:
  [[nodiscard]] char* end() noexcept { return text_.data() + size_; }
  [[nodiscard]] std::size_t left() const noexcept { return text_.size() - size_; }

  std::array<char, 88> text_;  // the longest are 64 bits of a TNT packet
  std::size_t size_ = 0;
};

struct DumpText {
  std::string_view opcode;  // "tip.pge"
  ShortText payload;        // "3: 0000000000401000"
  ShortText detail;         // decoded payload of some packets: "cr3 0000000000afafa0"
};

[[nodiscard]] DumpText dump_text(const Packet& packet);

}  // namespace ptkit::packet
