// Where FILTER and TRACESTOP ranges are, process by process, and what of it a bundle can say: it has one
// trace unit's ranges, and decoders take these for those of all processes at all times.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "capture/record_options.h"
#include "trace/bundle.h"

namespace ptkit::capture {

// Of one process, from its beginning or an exec on.
struct ProcessRanges {
  using Set = std::set<std::pair<std::uint64_t, std::uint64_t>>;  // first, last
  Set filters;
  Set stops;
  bool stops_late = false;  // what a TRACESTOP range is for came where other code had been executed

  // False if it is known already, or no matter of a trace unit.
  bool add(FilterRequest::Kind kind, std::uint64_t first, std::uint64_t last);
};

class FoundRanges {
 public:
  // `filters_only`: a FILTER was asked for; a process without one is not traced.
  explicit FoundRanges(bool filters_only) : filters_only_(filters_only) {}

  void add(const ProcessRanges& process);
  // What lies side by side is one. FILTER ranges of all processes: where packets go off their targets are
  // told, so it does no harm that one has more than it needs. But if a TRACESTOP does not hold for all of
  // them, or if there are more than a trace unit has, none.
  [[nodiscard]] std::vector<trace::AddressRange> common() const;

 private:
  bool filters_only_;
  ProcessRanges::Set filters_;
  std::optional<ProcessRanges::Set> stops_;
  bool stops_differ_ = false;
};

}  // namespace ptkit::capture
