// Finds the code that rows executed: the view of a row's address space at the row's time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>

#include "code/image/image.h"

namespace ptkit::code::symbol {

// Arrays of one length, one element per row.
struct RowAddresses {
  std::span<const std::uint64_t> ips;
  std::span<const std::uint32_t> spaces;
  std::span<const bool> known;  // whether each IP is known; empty: all are
  // Time interval [tsc, tsc + tsc_error] of a row; all three are empty for rows without times.
  std::span<const std::uint64_t> tsc;
  std::span<const std::uint32_t> tsc_error;
  std::span<const bool> time_known;

  [[nodiscard]] bool is_known(std::size_t row) const noexcept { return known.empty() || known[row]; }
};

// The times of a row's code: `first`; if nothing is mapped at the address then, `second`. With `backwards`,
// all times from `second` back.
struct RowTimes {
  std::uint64_t first = 0;
  std::uint64_t second = 0;
  bool backwards = true;
};

inline constexpr std::uint64_t kLastTime = trace::kTscMax - 1;  // at which code can be valid

[[nodiscard]] inline RowTimes times_of(const RowAddresses& rows, std::size_t row) noexcept {
  if (rows.tsc.empty()) return {kLastTime, kLastTime, true};
  if (!rows.time_known[row]) return {trace::kTscMin, kLastTime, true};
  const std::uint64_t begin = std::min(rows.tsc[row], kLastTime);
  return {begin, begin + std::min<std::uint64_t>(rows.tsc_error[row], kLastTime - begin), false};
}

[[nodiscard]] inline bool covers(const code::image::CodeView& view, std::uint64_t tsc) noexcept {
  return tsc >= view.valid_from() && tsc < view.valid_to();
}
[[nodiscard]] bool maps(const code::image::CodeView& view, std::uint64_t ip);

// The region and file that have the code at an address; where code of no file (page dumps, page caches) hides
// a file of all spaces, those of the file.
[[nodiscard]] code::image::Provenance file_at(const code::image::Image& image,
                                              const code::image::CodeView& view, std::uint64_t ip);
// The same, where the view has `seen` at the address.
[[nodiscard]] code::image::Provenance file_of(const code::image::Image& image,
                                              const code::image::CodeView& view,
                                              const code::image::Provenance& seen, std::uint64_t ip);

// Caches the view of a space at a time: consecutive rows mostly share a view.
class RowViews {
 public:
  explicit RowViews(const code::image::Image& image) : image_(image) {}

  // Valid as long as the image.
  [[nodiscard]] const code::image::CodeView& at(trace::SpaceId space, std::uint64_t tsc) {
    if (view_ == nullptr || view_->space() != space || !covers(*view_, tsc)) view_ = &image_.view(space, tsc);
    return *view_;
  }
  // The view that has code at an address, or null; `first` is that of times.first.
  [[nodiscard]] const code::image::CodeView* with_code(const code::image::CodeView& first,
                                                       const RowTimes& times, std::uint64_t ip) const;

 private:
  const code::image::Image& image_;
  const code::image::CodeView* view_ = nullptr;
};

}  // namespace ptkit::code::symbol
