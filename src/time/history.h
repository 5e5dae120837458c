// Points of which all is known that ever will be, by offset.
#pragma once

#include <cstdint>
#include <span>

#include "simd/isa.h"
#include "time/point.h"

namespace ptkit::time {

inline constexpr std::uint64_t kUnknown = std::numeric_limits<std::uint64_t>::max();

class History {
 public:
  enum Flag : std::uint8_t {
    BEFORE_TNT = Cycles::BEFORE_TNT,
    CYCLES = 4,  // a CYC packet
    BACK = 8,    // what precedes the point has no upper limit: there time begins, or went back
  };
  struct Info {
    Rank rank = Rank::NONE;
    std::uint8_t flags = 0;
  };
  struct Point {
    Extent place;
    std::uint64_t low = 0;
    std::uint64_t high = 0;
    Info info;

    template <typename Fields>
    void describe(Fields& fields) {  // for files: see base/fields.h
      place.describe(fields);
      fields(low);
      fields(high);
      fields(info.rank, Rank::CYC);
      fields(info.flags);
    }
  };

  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  [[nodiscard]] bool empty() const noexcept { return size_ == 0; }
  [[nodiscard]] const Extent& place(std::size_t index) const noexcept { return place_[index]; }
  [[nodiscard]] std::uint64_t low(std::size_t index) const noexcept { return low_[index]; }
  [[nodiscard]] std::uint64_t high(std::size_t index) const noexcept { return high_[index]; }  // or kUnknown
  [[nodiscard]] std::uint64_t high_before(std::size_t index) const noexcept {
    return (info_[index].flags & BACK) != 0 ? kUnknown : high_[index];
  }
  [[nodiscard]] Info info(std::size_t index) const noexcept { return info_[index]; }
  [[nodiscard]] Point point(std::size_t index) const noexcept {
    return {place_[index], low_[index], high_[index], info_[index]};
  }
  [[nodiscard]] std::uint64_t first_offset() const noexcept { return place_[0].first; }
  [[nodiscard]] std::uint64_t last_offset() const noexcept { return place_[size_ - 1].first; }

  // Index of the last point that begins at or before `offset`, which the first point does; found fast if it
  // is near `hint`.
  [[nodiscard]] std::size_t seek(std::size_t hint, std::uint64_t offset) const noexcept {
    constexpr std::size_t kNear = 4;
    if (hint < size_ && place_[hint].first <= offset) {
      for (std::size_t i = 0; i < kNear; ++i, ++hint) {
        if (hint + 1 == size_ || place_[hint + 1].first > offset) return hint;
      }
    }
    return search(offset);
  }

  // Places that go on from point to point: each begins at the offset of the one before (the first at
  // `placed`, which point `at` is the last one to precede) and ends within the next point. Answers the first
  // ones that do, as long as lower limits do not go back (the last one was `newest`) and upper limits are
  // known; says how many. Some cells of `out` behind them are overwritten.
  [[nodiscard]] std::size_t answer_steps(std::size_t at, std::uint64_t placed, std::uint64_t newest,
                                         std::span<const Question> questions, TimeRange* out) const noexcept {
    return isa_ == simd::Isa::AVX512 ? answer_wide(at, placed, newest, questions, out) : 0;
  }

  // Appends the points of a resolved frame but for the opening one. `back`: its last TSC is before `origin`.
  void append(const Frame& frame, std::uint64_t origin, bool back);
  // Appends a TSC at `time` with which time begins.
  void begin(const Extent& place, std::uint64_t time, std::uint64_t high);
  // Begins with a point of an earlier history.
  void begin(const Point& point);
  // Forgets points before `offset` (all but one of them) where that is worth the while, or where there are
  // too many; says how many.
  std::size_t forget(std::uint64_t offset);

 private:
  [[nodiscard]] std::size_t search(std::uint64_t offset) const noexcept;
  void reserve(std::size_t extra);
  void push(const Extent& place, std::uint64_t low, std::uint64_t high, Info info) noexcept;
  void push(const Anchor& anchor, std::uint64_t origin) noexcept;
  void push_cycles(const Cycles& cycles, std::size_t begin, std::size_t end, std::uint64_t origin) noexcept;
  [[nodiscard]] std::size_t answer_wide(std::size_t at, std::uint64_t placed, std::uint64_t newest,
                                        std::span<const Question> questions, TimeRange* out) const noexcept;
  // CYC packets behind the last point, 8 at once; false: some limits are too large for that, nothing is
  // certain.
  bool put_wide(const Cycles& cycles, std::size_t begin, std::size_t end, std::uint64_t origin) noexcept;

  Buffer<Extent> place_;
  Buffer<std::uint64_t> low_;
  Buffer<std::uint64_t> high_;
  Buffer<Info> info_;
  std::size_t size_ = 0;
  simd::Isa isa_ = simd::isa_choice().isa;
};

// Spans below are rounded by conversion to an integer.
inline constexpr double kConvertible = 4e18;

[[nodiscard]] std::uint64_t add_floor(std::uint64_t origin, double ticks) noexcept;
[[nodiscard]] std::uint64_t add_ceil(std::uint64_t origin, double ticks) noexcept;

}  // namespace ptkit::time
