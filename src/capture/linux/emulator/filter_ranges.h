// The FILTER and TRACESTOP ranges of each process, and those of the bundle. A bundle has the address ranges
// of one trace unit, and decoders apply them to all processes at all times.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "capture/common/record_options.h"
#include "trace/bundle.h"

namespace ptkit::capture {

// The ranges of one process from its start or an exec().
struct ProcessRanges {
  using Set = std::set<std::pair<std::uint64_t, std::uint64_t>>;  // first, last
  Set filters;
  Set stops;
  bool stops_late = false;  // a TRACESTOP range was mapped where other code had been executed

  // Returns false if the range is known already, or its kind is none of a trace unit (START, STOP).
  bool add(FilterRequest::Kind kind, std::uint64_t first, std::uint64_t last);
};

class FilterRanges {
 public:
  // `filters_only`: the options have a FILTER, so a process without one is not traced.
  explicit FilterRanges(bool filters_only) : filters_only_(filters_only) {}

  void add(const ProcessRanges& process);
  // The ranges for the bundle, with overlapping and adjacent ranges merged. FILTER ranges are the union over
  // all processes. A range of another process does no harm: where a branch leaves the traced ranges, TIP.PGD
  // has the target. The result is empty if processes differ in TRACESTOP ranges, or if a trace unit has fewer
  // ranges.
  [[nodiscard]] std::vector<trace::AddressRange> common() const;

 private:
  bool filters_only_;
  ProcessRanges::Set filters_;
  std::optional<ProcessRanges::Set> stops_;
  bool stops_differ_ = false;
};

}  // namespace ptkit::capture
