// Which code of a process is traced, by address: resolved ranges, as a trace unit compares them.
//
// A taken branch, or an event, that lands outside of all FILTER ranges switches packets off, one that lands
// inside switches them on; code that is reached by going straight on changes nothing. TRACESTOP likewise.
// START and STOP are no matter of a trace unit: they act where their instruction is executed.
// A trace unit has four ranges; here there may be more.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "capture/record_options.h"

namespace ptkit::capture {

class AddressFilter {
 public:
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t last = 0;  // inclusive
  };
  // Something that is done where one instruction is executed.
  struct Point {
    enum class Kind : std::uint8_t { STOP, START, WATCH };  // in this order, at one address
    std::uint64_t address = 0;
    Kind kind = Kind::WATCH;
    std::uint32_t id = 0;  // WATCH
  };

  // What holds at one time: never changed, so that threads may look at it while others add ranges.
  class Rules {
   public:
    [[nodiscard]] bool traced(std::uint64_t ip) const noexcept;  // by the FILTER ranges
    [[nodiscard]] bool stops(std::uint64_t ip) const noexcept;   // TRACESTOP
    // Where execution may land without a change.
    [[nodiscard]] bool plain(std::uint64_t ip) const noexcept { return traced(ip) && !stops(ip); }
    // By address, of [begin, end).
    [[nodiscard]] std::span<const Point> points(std::uint64_t begin, std::uint64_t end) const noexcept;
    [[nodiscard]] bool waits_for_start() const noexcept { return starts_; }

   private:
    friend class AddressFilter;
    std::vector<Range> filters_;  // sorted
    std::vector<Range> stops_;
    std::vector<Point> points_;  // sorted
    bool filters_only_ = false;  // a FILTER was asked for
    bool starts_ = false;        // a START was asked for
  };

  // `requests` tell which kinds of ranges there will be: with a FILTER nothing is traced outside, even before
  // it is known where that is; with a START nothing is traced before.
  explicit AddressFilter(std::span<const FilterRequest> requests = {});

  void add(FilterRequest::Kind kind, std::uint64_t first, std::uint64_t last);  // START, STOP: at `first`
  void watch(std::uint64_t address, std::uint32_t id);

  // Of now; good as long as the filter. Another pointer: something was added.
  [[nodiscard]] const Rules* rules() const noexcept { return now_.load(std::memory_order_acquire); }

 private:
  template <typename Change>
  void change(const Change& make);

  std::mutex mutex_;
  std::vector<std::unique_ptr<const Rules>> all_;
  std::atomic<const Rules*> now_{nullptr};
};

}  // namespace ptkit::capture
