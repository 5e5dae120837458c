// SAMPLE records, field by field as their event's sample_type says (uapi/linux/perf_event.h). For .cpp files
// of this folder only.
#pragma once

#include <optional>

#include "formats/perf_record.h"

namespace ptkit::formats::perf {

// What of a sample matters here. Views of the record: gone with it.
struct Sample {
  Trailer who;
  std::uint64_t ip = 0;
  std::uint64_t address = 0;
  std::uint64_t period = 0;
  bool is_32_bit = false;  // user code, as its registers say
  base::Bytes raw;         // of a tracepoint
  base::Bytes branches;    // the branch stack: kBranchEntryBytes each, the newest first
  base::Bytes trace;       // of the AUX area
};

// Empty if the record is too short for what its attributes say.
[[nodiscard]] std::optional<Sample> parse_sample(const Attr& attr, base::Bytes body);

}  // namespace ptkit::formats::perf
