// Parses the records of perf's rings: sideband records, AUX records, samples.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "capture/linux/sideband/system_record.h"
#include "formats/perf_event/sideband.h"
#include "trace/branch_record.h"

namespace ptkit::capture {

// PERF_RECORD_AUX: a range of AUX data, and PERF_AUX_FLAG_*.
struct AuxRecord {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t flags = 0;
  std::uint64_t tsc = 0;  // of the record; the thread is the one that ran then
  std::int32_t pid = 0;
  std::int32_t tid = 0;
};

// Consecutive branches of one thread (-1: not known). The last branch is not later than `tsc`.
struct BranchChunk {
  std::uint64_t tsc = 0;
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  std::vector<trace::BranchRecord> records;
};

// The event of a trigger fired.
struct FiredEvent {
  std::uint64_t event = 0;  // its ID (PERF_EVENT_IOC_ID)
  std::int32_t pid = 0;
  std::uint64_t tsc = 0;
};

struct ParsedRecords {
  std::vector<SystemRecord> records;
  std::vector<AuxRecord> aux_records;
  std::vector<FiredEvent> fired;
  std::vector<BranchChunk> stacks;                 // branch stacks of samples
  std::vector<formats::perf::Running> running;     // without `switches`: threads in and out
  std::uint64_t lost = 0;                          // LOST: records that the full ring dropped
  bool is_full = false;                            // the ring had no space for an AUX record
  std::uint64_t throttled = 0;                     // THROTTLE and LOST_SAMPLES records
  std::uint64_t bad = 0;                           // malformed records
  std::map<std::uint32_t, std::uint64_t> unknown;  // record types of a newer kernel: counts
};

// For the rings of one CPU or thread.
class PerfRecords {
 public:
  // `attr`: of the events that write the ring. `switches`: SWITCH records become SystemRecords, otherwise
  // entries of `running`.
  PerfRecords(formats::perf::Attr attr, const trace::Clock& clock, bool switches);
  PerfRecords(const PerfRecords&) = delete;  // `trailers_` refers to `attrs_`
  PerfRecords& operator=(const PerfRecords&) = delete;
  PerfRecords(PerfRecords&&) = default;
  PerfRecords& operator=(PerfRecords&&) = default;
  ~PerfRecords() = default;

  // Parses complete records. Returns how many bytes were read.
  std::size_t take(base::Bytes bytes, ParsedRecords& parsed);

 private:
  [[nodiscard]] bool take_record(const formats::perf::Record& record, ParsedRecords& parsed);
  [[nodiscard]] bool take_sample(base::Bytes body, ParsedRecords& parsed) const;
  [[nodiscard]] bool on_fired_event(formats::perf::Fields fields, ParsedRecords& parsed) const;
  [[nodiscard]] static bool take_aux(base::Bytes body, const SystemRecord& common, ParsedRecords& parsed);
  [[nodiscard]] bool take_sideband(const formats::perf::Record& record, base::Bytes body,
                                   const formats::perf::Trailer& trailer, const SystemRecord& common,
                                   ParsedRecords& parsed);
  void take_switch(const formats::perf::Running& running, SystemRecord out, ParsedRecords& parsed);
  [[nodiscard]] std::uint64_t tsc_of(const formats::perf::Trailer& trailer) const;

  std::vector<formats::perf::Attr> attrs_;
  formats::perf::Trailers trailers_;
  trace::Clock clock_;
  bool switches_;
  bool any_switch_ = false;
  trace::Departure departure_ = trace::Departure::UNKNOWN;  // by the record of `last_out_`
  std::uint64_t last_out_ = 0;  // of the last SWITCH OUT or EXIT; 0: none since the last switch in
};

}  // namespace ptkit::capture
