// Writes the facts of perf.data about a whole recording: event, AUXTRACE_INFO, clock, machine. For .cpp files
// of this folder only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "formats/perf_data/attrs.h"
#include "formats/perf_export/packets.h"
#include "formats/perf_export/records.h"
#include "formats/perf_export/tasks.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

inline constexpr std::uint32_t kPmuType = 8;  // any number; the feature PMU_MAPPINGS names it
inline constexpr std::size_t kAttrBytes = 128;

struct WrittenEvent {
  TraceKind kind = TraceKind::INTEL_PT;
  std::uint64_t config = 0;
  bool exclude_user = false;
  bool exclude_kernel = false;
};

// Returns the event for the trace unit's configuration (IA32_RTIT_CTL), or, if that is unknown, for the
// packets of the streams. Branch records give the event intel_bts.
[[nodiscard]] WrittenEvent written_event(const trace::TraceBundle& bundle,
                                         const std::vector<StreamPackets>& packets,
                                         std::vector<trace::Warning>& notes);

[[nodiscard]] std::vector<std::uint8_t> attr_bytes(const WrittenEvent& event);
// `per_cpu`: some streams belong to CPUs. `filter`: address ranges in perf's --filter syntax; empty: there
// were none; nullopt: the record does not say, as those of perf before 4.10.
[[nodiscard]] std::vector<std::uint8_t> auxtrace_info(const trace::TraceBundle& bundle,
                                                      const WrittenEvent& event, const trace::Clock& clock,
                                                      bool per_cpu, const std::optional<std::string>& filter);
[[nodiscard]] std::vector<std::uint8_t> time_conversion(const trace::Clock& clock);

struct WrittenFeature {
  unsigned number = 0;
  std::vector<std::uint8_t> bytes;
};
// Returns all features without file offsets, by number.
[[nodiscard]] std::vector<WrittenFeature> written_features(const trace::TraceBundle& bundle,
                                                           const WrittenEvent& event,
                                                           std::vector<trace::Warning>& notes);

}  // namespace ptkit::formats::perf
