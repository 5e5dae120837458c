// Long streams some megabytes at a time, so that what was unpacked of them can be forgotten.
#pragma once

#include "packet/decoder.h"
#include "trace/buffer.h"

namespace ptkit::packet {

// As find_psb() of all bytes of `data`, or `limit` if there is no PSB before it. Only what is looked at is
// made, and what lies before the PSB is forgotten.
[[nodiscard]] std::uint64_t find_psb(const trace::TraceBuffer& data, std::uint64_t from,
                                     std::uint64_t limit = UINT64_MAX) noexcept;

// Cuts where PSBs begin: a decoder begins each window anew. Where there is none for long, cuts anyway.
class PsbWindows {
 public:
  static constexpr std::uint64_t kLeastBytes = std::uint64_t{16} << 20U;
  static constexpr std::uint64_t kSearchedBytes = std::uint64_t{64} << 20U;  // the longest period of PSBs

  explicit PsbWindows(const trace::TraceBuffer& data) : data_(data.again()) {}

  // The next one; empty behind the last one. The one before is gone.
  [[nodiscard]] base::Bytes next() noexcept;
  [[nodiscard]] std::uint64_t begin() const noexcept { return begin_; }  // of the window, in the stream

 private:
  trace::TraceBuffer data_;
  std::uint64_t begin_ = 0;
  std::uint64_t end_ = 0;
};

}  // namespace ptkit::packet
