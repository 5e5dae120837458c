// What perf.data says of a recording as a whole: the event, AUXTRACE_INFO, the clock, the machine. For .cpp
// files of this folder only.
#pragma once

#include <string>
#include <vector>

#include "formats/perf_config.h"
#include "formats/perf_write_packets.h"
#include "formats/perf_write_records.h"
#include "formats/perf_write_tasks.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

inline constexpr std::uint32_t kPmuType = 8;  // any number; the file says what it is called
inline constexpr std::size_t kAttrBytes = 128;

struct WrittenEvent {
  TraceKind kind = TraceKind::INTEL_PT;
  std::uint64_t config = 0;
  bool exclude_user = false;
  bool exclude_kernel = false;
};

// What the trace unit was told, or what the packets of the streams show that it was told; of branch records
// Branch Trace Store's.
[[nodiscard]] WrittenEvent written_event(const trace::TraceBundle& bundle,
                                         const std::vector<StreamPackets>& packets,
                                         std::vector<std::string>& notes);

[[nodiscard]] std::vector<std::uint8_t> attr_bytes(const WrittenEvent& event);
// `per_cpu`: some streams are processors'. `filter`: address ranges in perf's words.
[[nodiscard]] std::vector<std::uint8_t> auxtrace_info(const trace::TraceBundle& bundle,
                                                      const WrittenEvent& event, const trace::Clock& clock,
                                                      bool per_cpu, const std::string& filter);
[[nodiscard]] std::vector<std::uint8_t> time_conversion(const trace::Clock& clock);

struct WrittenFeature {
  unsigned number = 0;
  std::vector<std::uint8_t> bytes;
};
// All but those that need to know where things lie in the file, by number.
[[nodiscard]] std::vector<WrittenFeature> written_features(const trace::TraceBundle& bundle,
                                                           const WrittenEvent& event,
                                                           std::vector<std::string>& notes);

}  // namespace ptkit::formats::perf
