// Reads a stream, or bytes in memory, from front to back. Internal to src/code/source/pdb.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "code/source/pdb/msf.h"

namespace ptkit::code::pdb {

// Where bytes are missing, values are 0, texts and bytes are empty, and good() is false from then on. Bytes
// and texts are valid until the next call.
class Cursor {
 public:
  explicit Cursor(base::Bytes bytes) noexcept : run_(bytes), end_(static_cast<std::uint32_t>(bytes.size())) {}
  // Bytes [begin, end) of a stream. The stream must outlive the object.
  Cursor(const Stream& stream, std::uint32_t begin, std::uint32_t end) noexcept
      : stream_(&stream), at_(begin), end_(end) {
    good_ = begin <= end && end <= stream.size();
    if (!good_) at_ = end_;
  }
  explicit Cursor(const Stream& stream) noexcept : Cursor(stream, 0, stream.size()) {}

  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] std::uint32_t offset() const noexcept { return at_; }
  [[nodiscard]] std::uint32_t left() const noexcept { return end_ - at_; }

  template <std::unsigned_integral T>
  [[nodiscard]] T next() {
    const base::Bytes bytes = take(sizeof(T));
    return bytes.empty() ? T{0} : static_cast<T>(base::load_le<sizeof(T)>(bytes.data()));
  }
  [[nodiscard]] std::uint16_t u16() { return next<std::uint16_t>(); }
  [[nodiscard]] std::uint32_t u32() { return next<std::uint32_t>(); }
  [[nodiscard]] base::Bytes take(std::uint32_t size);
  // Up to a null, which is skipped; 64 KiB at most.
  [[nodiscard]] std::string_view text();
  void skip(std::uint64_t size);
  // To the next multiple of four.
  void align() { skip(-at_ % 4 < left() ? -at_ % 4 : left()); }

 private:
  // As many of the next bytes as are in one run, or `size`, if these are more.
  [[nodiscard]] base::Bytes peek(std::uint32_t size);

  const Stream* stream_ = nullptr;
  base::Bytes run_;  // from at_ on
  std::uint32_t at_ = 0;
  std::uint32_t end_ = 0;
  bool good_ = true;
  std::vector<std::uint8_t> copy_;  // of bytes in several runs
};

}  // namespace ptkit::code::pdb
