// What perf's rings tell besides the trace, as records of the system and as notes about the trace.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "capture/system_record.h"
#include "formats/perf_sideband.h"
#include "trace/branch_record.h"

namespace ptkit::capture {

// PERF_RECORD_AUX: bytes of trace, and what is wrong with them (PERF_AUX_FLAG_*).
struct AuxNote {
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  std::uint64_t flags = 0;
  std::uint64_t tsc = 0;  // when, and who ran then
  std::int32_t pid = 0;
  std::int32_t tid = 0;
};

// Branches one behind the other, and whose they are (-1: not known). The last one is no younger than `tsc`.
struct BranchPiece {
  std::uint64_t tsc = 0;
  std::int32_t pid = 0;
  std::int32_t tid = 0;
  std::vector<trace::BranchRecord> records;
};

// Something that a trigger waits for has happened.
struct PerfHit {
  std::uint64_t event = 0;  // what the kernel calls it
  std::int32_t pid = 0;
  std::uint64_t tsc = 0;
};

struct PerfTold {
  std::vector<SystemRecord> records;
  std::vector<AuxNote> notes;
  std::vector<PerfHit> hits;
  std::vector<BranchPiece> stacks;                 // of samples
  std::vector<formats::perf::Running> running;     // where switches are no records: who came, and who went
  std::uint64_t lost = 0;                          // records for which the ring had no room
  std::uint64_t held_back = 0;                     // times that there were more samples than allowed
  std::uint64_t bad = 0;                           // that are none
  std::map<std::uint32_t, std::uint64_t> unknown;  // types of a newer kernel, and how many
};

// For one ring after the other of the same processor or thread.
class PerfRecords {
 public:
  // `attr`: of the events that write the ring. `switches`: its records tell who runs, by time.
  PerfRecords(formats::perf::Attr attr, const trace::Clock& clock, bool switches);

  // Whole records; gives how many bytes of them were read.
  std::size_t take(base::Bytes bytes, PerfTold& told);

 private:
  [[nodiscard]] bool take_one(const formats::perf::Record& record, PerfTold& told);
  [[nodiscard]] bool take_sample(base::Bytes body, PerfTold& told) const;
  [[nodiscard]] bool take_hit(formats::perf::Fields fields, PerfTold& told) const;
  [[nodiscard]] static bool take_aux(base::Bytes body, const SystemRecord& common, PerfTold& told);
  [[nodiscard]] bool take_sideband(const formats::perf::Record& record, base::Bytes body,
                                   const formats::perf::Trailer& who, const SystemRecord& common,
                                   PerfTold& told);
  void take_switch(bool is_out, SystemRecord out, PerfTold& told);
  [[nodiscard]] std::uint64_t tsc_of(const formats::perf::Trailer& who) const;

  std::vector<formats::perf::Attr> attrs_;
  formats::perf::Trailers trailers_;
  trace::Clock clock_;
  bool switches_;
  bool any_switch_ = false;
  std::uint64_t last_out_ = 0;  // of who was in last; 0: not told
};

}  // namespace ptkit::capture
