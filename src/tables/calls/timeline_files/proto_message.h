// Messages of protocol buffers, as bytes: https://protobuf.dev/programming-guides/encoding/
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

namespace ptkit::tables::calls {

class ProtoMessage {
 public:
  void clear() noexcept { bytes_.clear(); }
  [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }
  [[nodiscard]] std::string_view view() const noexcept { return bytes_; }

  void integer(unsigned field, std::uint64_t value) {
    put_varint(field << 3U);
    put_varint(value);
  }
  void real(unsigned field, double value) {
    put_varint(field << 3U | kFixed64);
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (unsigned shift = 0; shift < 64; shift += 8) bytes_ += static_cast<char>(bits >> shift & 0xffU);
  }
  // A string, bytes or a message.
  void bytes(unsigned field, std::string_view value) {
    put_varint(field << 3U | kLengthDelimited);
    put_varint(value.size());
    bytes_ += value;
  }
  void message(unsigned field, const ProtoMessage& value) { bytes(field, value.view()); }

 private:
  static constexpr unsigned kFixed64 = 1;  // wire types
  static constexpr unsigned kLengthDelimited = 2;

  void put_varint(std::uint64_t value) {
    for (; value > 0x7f; value >>= 7U) bytes_ += static_cast<char>(value | 0x80U);
    bytes_ += static_cast<char>(value);
  }

  std::string bytes_;
};

}  // namespace ptkit::tables::calls
