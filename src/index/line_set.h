// Which code a part of a trace touches.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace ptkit::index {

struct IpSpan {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  // inclusive
};

// Lines of 64 bytes that have an address of a row.
class LineSet {
 public:
  static constexpr unsigned kLineBits = 6;
  // Where there are more lines, they are told as larger ones.
  static constexpr std::size_t kMostLines = 2048;

  LineSet();

  // Consecutive addresses.
  void add(std::uint64_t first, std::uint64_t last) {
    Seen& seen = seen_[(first ^ first >> 11U) % seen_.size()];
    if (seen.first == first && seen.last >= last) return;
    seen = {first, last};
    add_lines(first >> kLineBits, last >> kLineBits);
  }
  void add(std::uint64_t ip) { add(ip, ip); }

  // In order, as few bytes.
  [[nodiscard]] std::vector<std::uint8_t> to_bytes() const;

 private:
  struct Seen {
    std::uint64_t first = ~std::uint64_t{0};
    std::uint64_t last = 0;
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};

  void add_lines(std::uint64_t first, std::uint64_t last);
  void insert(std::uint64_t line);
  void grow();

  std::array<Seen, 4096> seen_;  // of what was added lately
  std::vector<std::uint64_t> slots_;
  std::size_t size_ = 0;
};

// Is an address of `spans` on one of the lines that to_bytes() told? Also if the bytes are damaged.
[[nodiscard]] bool touches(base::Bytes lines, std::span<const IpSpan> spans) noexcept;

}  // namespace ptkit::index
