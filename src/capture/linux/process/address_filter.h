// The address filter of a process: ranges with the meaning that a trace unit gives them (ADDRn_CFG).
//
// The target of a taken branch or an event decides: outside all FILTER ranges it disables packets, inside it
// enables them. Fall-through into or out of a range changes nothing. TRACESTOP ranges act at such targets,
// too. START and STOP exist only in software: they act when their instruction is executed. A trace unit has
// four ranges; a filter can have more.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "capture/common/record_options.h"

namespace ptkit::capture {

class AddressFilter {
 public:
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t last = 0;  // inclusive
  };
  // An action at the execution of one instruction.
  struct Point {
    enum class Kind : std::uint8_t { STOP, START, WATCH };  // the order at one address
    std::uint64_t address = 0;
    Kind kind = Kind::WATCH;
    std::uint32_t id = 0;  // WATCH
  };

  // An immutable version of the filter: threads read it while others add ranges (copy on write).
  class Rules {
   public:
    [[nodiscard]] bool traced(std::uint64_t ip) const noexcept;  // FILTER ranges
    [[nodiscard]] bool stops(std::uint64_t ip) const noexcept;   // TRACESTOP ranges
    // Whether a branch to `ip` leaves packets enabled.
    [[nodiscard]] bool plain(std::uint64_t ip) const noexcept { return traced(ip) && !stops(ip); }
    // The points in [begin, end), sorted by address.
    [[nodiscard]] std::span<const Point> points(std::uint64_t begin, std::uint64_t end) const noexcept;
    [[nodiscard]] bool waits_for_start() const noexcept { return starts_; }

   private:
    friend class AddressFilter;
    std::vector<Range> filters_;  // sorted
    std::vector<Range> stops_;
    std::vector<Point> points_;  // sorted
    bool filters_only_ = false;  // the requests have a FILTER
    bool starts_ = false;        // the requests have a START
  };

  // Only the kinds of `requests` are used. With a FILTER, code outside the FILTER ranges is not traced, even
  // before the ranges are known. With a START, code before it is not traced.
  explicit AddressFilter(std::span<const FilterRequest> requests = {});

  void add(FilterRequest::Kind kind, std::uint64_t first, std::uint64_t last);  // START, STOP: at `first`
  void watch(std::uint64_t address, std::uint32_t id);

  // The current version, valid as long as the filter. Another pointer means that something was added.
  [[nodiscard]] const Rules* rules() const noexcept { return current_.load(std::memory_order_acquire); }

 private:
  template <typename Change>
  void change(const Change& make);

  std::mutex mutex_;
  std::vector<std::unique_ptr<const Rules>> versions_;
  std::atomic<const Rules*> current_{nullptr};
};

}  // namespace ptkit::capture
