// Reads long streams in windows of some megabytes, so that the unpacked bytes of earlier windows can be
// freed.
#pragma once

#include "packet/decoder.h"
#include "trace/buffer.h"

namespace ptkit::packet {

// As find_psb() on all bytes of `data`, or `limit` if there is no PSB before it. Unpacks only the bytes that
// it searches, and frees those before the PSB.
[[nodiscard]] std::uint64_t find_psb(const trace::TraceBuffer& data, std::uint64_t from,
                                     std::uint64_t limit = UINT64_MAX) noexcept;

// Cuts a stream at PSBs: a decoder starts anew at each window. Cuts anywhere if there is no PSB for
// kSearchedBytes.
class PsbWindows {
 public:
  static constexpr std::uint64_t kLeastBytes = std::uint64_t{16} << 20U;
  static constexpr std::uint64_t kSearchedBytes = std::uint64_t{64} << 20U;  // the longest period of PSBs

  explicit PsbWindows(const trace::TraceBuffer& data) : data_(data.again()) {}

  // Returns the next window; empty after the last one. Frees the previous window.
  [[nodiscard]] base::Bytes next() noexcept;
  [[nodiscard]] std::uint64_t begin() const noexcept { return begin_; }  // stream offset of the window

 private:
  trace::TraceBuffer data_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace ptkit::packet
