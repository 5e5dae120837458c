#include "time/history.h"

#include <algorithm>
#include <cmath>

namespace ptkit::time {
namespace {

// Points that are kept if no PSB allows to drop them.
constexpr std::size_t kMaxHistory = std::size_t{1} << 19;

constexpr double kFar = 9e18;  // above it, conversion to an integer is undefined

std::uint64_t add_saturating(std::uint64_t origin, std::uint64_t more) noexcept {
  return origin > kUnknown - more ? kUnknown : origin + more;
}

}  // namespace

// Only damaged streams have times beyond 2^64. Their lower limit is kLastTime.
std::uint64_t add_floor(std::uint64_t origin, double ticks) noexcept {
  ticks = std::max(0.0, ticks);
  if (!(ticks < kFar)) return kLastTime;
  return std::min(add_saturating(origin, static_cast<std::uint64_t>(static_cast<std::int64_t>(ticks))),
                  kLastTime);
}
std::uint64_t add_ceil(std::uint64_t origin, double ticks) noexcept {
  ticks = std::max(0.0, ticks);
  if (ticks < kConvertible) {
    const auto whole = static_cast<std::int64_t>(ticks);
    const std::int64_t more = static_cast<double>(whole) < ticks ? 1 : 0;
    return add_saturating(origin, static_cast<std::uint64_t>(whole + more));
  }
  if (!(ticks < kFar)) return kUnknown;
  return add_saturating(origin, static_cast<std::uint64_t>(std::ceil(ticks)));
}

std::size_t History::search(std::uint64_t offset) const noexcept {
  const Extent* const begin = extent_.data();
  const Extent* const after = std::upper_bound(
      begin, begin + size_, offset, [](std::uint64_t at, const Extent& extent) { return at < extent.first; });
  return static_cast<std::size_t>(after - begin) - 1;
}

void History::reserve(std::size_t extra) {
  grow_to(extent_, size_ + extra);
  grow_to(low_, size_ + extra);
  grow_to(high_, size_ + extra);
  grow_to(info_, size_ + extra);
}

void History::push(const Extent& extent, std::uint64_t low, std::uint64_t high, Info info) noexcept {
  extent_[size_] = extent;
  low_[size_] = low;
  high_[size_] = high;
  info_[size_] = info;
  ++size_;
}

void History::push(const TscMtcPoint& point, std::uint64_t origin) noexcept {
  push(point.extent, add_floor(origin, point.low), add_ceil(origin, point.high), {rank_of(point.source), 0});
}

void History::begin(const Extent& extent, std::uint64_t time, std::uint64_t high) {
  reserve(1);
  push(extent, time, high, {Rank::TSC, BACK});
}

void History::begin(const Point& point) {
  reserve(1);
  push(point.extent, point.low, point.high, point.info);
}

void History::append(const Frame& frame, std::uint64_t origin, bool back) {
  reserve(frame.points());
  for (std::size_t k = 0; k < frame.tsc_mtc_points.size(); ++k) {
    const TscMtcPoint& point = frame.tsc_mtc_points[k];
    if (back && k + 1 == frame.tsc_mtc_points.size()) {
      begin(point.extent, frame.end_tsc, frame.end_tsc);
    } else if (k > 0 && point.usable) {
      push(point, origin);
    }
    push_cycles(frame.cycles, point.cycles, frame.cycles_end(k), origin);
  }
}

void History::push_cycles(const Cycles& cycles, std::size_t begin, std::size_t end,
                          std::uint64_t origin) noexcept {
  if (isa_ == base::cpu::Isa::AVX512 && put_wide(cycles, begin, end, origin)) {
    size_ += end - begin;
    return;
  }
  std::copy(cycles.extent.data() + begin, cycles.extent.data() + end, extent_.data() + size_);
  Info* const infos = info_.data() + size_;
  const Rank* const ranks = cycles.rank.data() + begin;
  const std::uint8_t* const flags = cycles.flags.data() + begin;
  for (std::size_t i = 0; i < end - begin; ++i) {
    infos[i] = {ranks[i], static_cast<std::uint8_t>(flags[i] | CYCLES)};
  }
  for (std::size_t i = begin; i < end; ++i) {
    low_[size_ + i - begin] = add_floor(origin, cycles.low[i]);
    high_[size_ + i - begin] = add_ceil(origin, cycles.high[i]);
  }
  size_ += end - begin;
}

std::size_t History::forget(std::uint64_t offset) {
  const Extent* const first = extent_.data();
  const Extent* const needed = std::lower_bound(
      first, first + size_, offset, [](const Extent& extent, std::uint64_t at) { return extent.first < at; });
  auto count = static_cast<std::size_t>(needed - first);
  if (size_ > kMaxHistory) count = std::max(count, size_ - kMaxHistory / 2);
  count = count == 0 ? 0 : count - 1;  // the preceding point is the lower limit
  if (count < 1024 || count * 2 < size_) return 0;
  const auto drop = [&](auto& buffer) {
    std::copy(buffer.data() + count, buffer.data() + size_, buffer.data());
  };
  drop(extent_);
  drop(low_);
  drop(high_);
  drop(info_);
  size_ -= count;
  return count;
}

}  // namespace ptkit::time
