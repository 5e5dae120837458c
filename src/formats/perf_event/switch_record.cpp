#include "formats/perf_event/switch_record.h"

#include "formats/perf_event/record.h"
#include "formats/perf_event/sideband.h"

namespace ptkit::formats {

namespace {

// next_prev_pid, next_prev_tid; then the sample trailer: pid, tid, time.
constexpr std::size_t kBodyBytes = 8 + 16;

}  // namespace

PerfSwitches read_perf_switches(base::Bytes records) {
  PerfSwitches result;
  const perf::Walked walked = perf::walk(records, 0, false, [&result](const perf::Record& record) {
    if (record.type != perf::SWITCH_CPU_WIDE) return true;
    if (record.body.size() != kBodyBytes) {
      result.damaged_offset = record.offset;
      return false;
    }
    // The trailer has the thread that is switched in or out.
    perf::Fields fields(record.body, 8);
    PerfSwitch one;
    one.out = (record.misc & perf::kMiscSwitchOut) != 0;
    one.departure = perf::departure_of(record.misc);
    one.pid = fields.u32();
    one.tid = fields.u32();
    one.time_ns = fields.u64();
    result.records.push_back(one);
    return true;
  });
  if (!result.damaged_offset && walked.end != records.size()) result.damaged_offset = walked.end;
  return result;
}

}  // namespace ptkit::formats
