// Set of the code addresses in a part of a trace.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/bytes.h"

namespace ptkit::flow::index {

struct IpSpan {
  std::uint64_t first = 0;
  std::uint64_t last = 0;  // inclusive
};

// Hash set of 64-byte lines that contain an address of a row.
class LineSet {
 public:
  static constexpr unsigned kLineBits = 6;
  // With more lines, to_bytes() writes larger lines.
  static constexpr std::size_t kMostLines = 2048;

  LineSet();

  // Adds all addresses in [first, last].
  void add(std::uint64_t first, std::uint64_t last) {
    Recent& recent = recent_[(first ^ first >> 11U) % recent_.size()];
    if (recent.first == first && recent.last >= last) return;
    recent = {first, last};
    add_lines(first >> kLineBits, last >> kLineBits);
  }
  void add(std::uint64_t ip) { add(ip, ip); }

  // Delta-encoded in ascending order.
  [[nodiscard]] std::vector<std::uint8_t> to_bytes() const;

 private:
  struct Recent {
    std::uint64_t first = ~std::uint64_t{0};
    std::uint64_t last = 0;
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};

  void add_lines(std::uint64_t first, std::uint64_t last);
  void insert(std::uint64_t line);
  void grow();

  std::array<Recent, 4096> recent_;  // direct-mapped cache of recent ranges
  std::vector<std::uint64_t> slots_;
  std::size_t size_ = 0;
};

// True if an address of `spans` is on one of the lines that to_bytes() wrote, or if the bytes are damaged.
[[nodiscard]] bool touches(base::Bytes lines, std::span<const IpSpan> spans) noexcept;

}  // namespace ptkit::flow::index
