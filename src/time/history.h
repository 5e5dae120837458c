// Resolved points by offset. Their limits are final.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/cpu/isa.h"
#include "time/point.h"

namespace ptkit::time {

inline constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();
inline constexpr std::uint64_t kLastTime = kUnknown - 1;

class History {
 public:
  enum Flag : std::uint8_t {
    BEFORE_TNT = Cycles::BEFORE_TNT,
    CYCLES = 4,  // a CYC packet
    BACK = 8,    // the time before the point has no upper limit: time starts there, or went back
  };
  struct Info {
    Rank rank = Rank::NONE;
    std::uint8_t flags = 0;
  };
  struct Point {
    Extent extent;
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    Info info;

    template <typename Fields>
    void describe(Fields& fields) {  // for files: see base/fields.h
      extent.describe(fields);
      fields(low);
      fields(high);
      fields(info.rank, Rank::CYC);
      fields(info.flags);
    }
  };

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] const Extent& extent(std::size_t index) const noexcept { return extent_[index]; }
  [[nodiscard]] std::uint64_t low(std::size_t index) const noexcept { return low_[index]; }
  [[nodiscard]] std::uint64_t high(std::size_t index) const noexcept { return high_[index]; }  // or kUnknown
  [[nodiscard]] std::uint64_t high_before(std::size_t index) const noexcept {
    return (info_[index].flags & BACK) != 0 ? kUnknown : high_[index];
  }
  [[nodiscard]] Info info(std::size_t index) const noexcept { return info_[index]; }
  [[nodiscard]] Point point(std::size_t index) const noexcept {
    return {extent_[index], low_[index], high_[index], info_[index]};
  }
  [[nodiscard]] std::uint64_t first_offset() const noexcept { return extent_[0].first; }
  [[nodiscard]] std::uint64_t last_offset() const noexcept { return extent_[size_ - 1].first; }

  // Linear search near `hint`, then binary search: index of the last point that begins at or before `offset`.
  // The first point does.
  [[nodiscard]] std::size_t seek(std::size_t hint, std::uint64_t offset) const noexcept {
    constexpr std::size_t kNear = 4;
    if (hint < size_ && extent_[hint].first <= offset) {
      for (std::size_t i = 0; i < kNear; ++i, ++hint) {
        if (hint + 1 == size_ || extent_[hint + 1].first > offset) return hint;
      }
    }
    return search(offset);
  }

  // Answers queries that advance from point to point: each begins at the offset of the previous one (the
  // first at `previous_offset`; `at` is the last point before it), and ends within the next point. Stops
  // before a query if its lower limit goes back (`newest` is the previous one) or its upper limit is
  // unknown. Returns the number of answers. May overwrite elements of `out` after them.
  [[nodiscard]] std::size_t answer_steps(std::size_t at, std::uint64_t previous_offset, std::uint64_t newest,
                                         std::span<const TimeQuery> queries, TimeRange* out) const noexcept {
    return isa_ == base::cpu::Isa::AVX512 ? answer_wide(at, previous_offset, newest, queries, out) : 0;
  }

  // Appends the points of a resolved frame without the opening one. `back`: its last TSC is before `origin`.
  void append(const Frame& frame, std::uint64_t origin, bool back);
  // Appends a TSC at `time`, where time starts.
  void begin(const Extent& extent, std::uint64_t time, std::uint64_t high);
  // Starts with a point of an earlier history.
  void begin(const Point& point);
  // Drops points before `offset`, except for the last of them, if that frees enough memory or there are too
  // many points. Returns the number of dropped points.
  std::size_t forget(std::uint64_t offset);

 private:
  [[nodiscard]] std::size_t search(std::uint64_t offset) const noexcept;
  void reserve(std::size_t extra);
  void push(const Extent& extent, std::uint64_t low, std::uint64_t high, Info info) noexcept;
  void push(const TscMtcPoint& point, std::uint64_t origin) noexcept;
  void push_cycles(const Cycles& cycles, std::size_t begin, std::size_t end, std::uint64_t origin) noexcept;
  [[nodiscard]] std::size_t answer_wide(std::size_t at, std::uint64_t previous_offset, std::uint64_t newest,
                                        std::span<const TimeQuery> queries, TimeRange* out) const noexcept;
  // Appends CYC packets, 8 at once. False: some limits are too large for that, and nothing is appended.
  bool put_wide(const Cycles& cycles, std::size_t begin, std::size_t end, std::uint64_t origin) noexcept;

  std::vector<Extent> extent_;
  std::vector<std::uint64_t> low_;
  std::vector<std::uint64_t> high_;
  std::vector<Info> info_;
  std::size_t size_ = 0;
  base::cpu::Isa isa_ = base::cpu::isa_choice().isa;
};

// Limits below this are rounded by conversion to an integer.
inline constexpr double kConvertible = 4e18;

[[nodiscard]] std::uint64_t add_floor(std::uint64_t origin, double ticks) noexcept;
[[nodiscard]] std::uint64_t add_ceil(std::uint64_t origin, double ticks) noexcept;

}  // namespace ptkit::time
