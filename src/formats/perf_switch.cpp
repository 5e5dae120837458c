#include "formats/perf_switch.h"

namespace ptkit::formats {

namespace {

// uapi/linux/perf_event.h
constexpr std::uint32_t kRecordSwitchCpuWide = 15;
constexpr std::uint16_t kMiscSwitchOut = 1U << 13U;
constexpr std::size_t kHeaderBytes = 8;
// Body: next_prev_pid, next_prev_tid; then the sample trailer: pid, tid, time.
constexpr std::size_t kSwitchBytes = kHeaderBytes + 8 + 16;

}  // namespace

PerfSwitches read_perf_switches(base::Bytes records) {
  PerfSwitches result;
  std::size_t at = 0;
  while (records.size() - at >= kHeaderBytes) {
    const std::uint8_t* record = records.data() + at;
    const auto type = static_cast<std::uint32_t>(base::load_le<4>(record));
    const auto misc = static_cast<std::uint16_t>(base::load_le<2>(record + 4));
    const std::size_t size = base::load_le<2>(record + 6);
    const bool is_switch = type == kRecordSwitchCpuWide;
    if (size < kHeaderBytes || size > records.size() - at || (is_switch && size != kSwitchBytes)) break;
    if (is_switch) {
      // The trailer names the thread that the record is about: it goes out, or comes in.
      PerfSwitch one;
      one.out = (misc & kMiscSwitchOut) != 0;
      one.pid = static_cast<std::uint32_t>(base::load_le<4>(record + 16));
      one.tid = static_cast<std::uint32_t>(base::load_le<4>(record + 20));
      one.time_ns = base::load_le<8>(record + 24);
      result.records.push_back(one);
    }
    at += size;
  }
  if (at != records.size()) result.damaged_offset = at;
  return result;
}

}  // namespace ptkit::formats
