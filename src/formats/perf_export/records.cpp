#include "formats/perf_export/records.h"

#include <algorithm>

#include "trace/clock.h"

namespace ptkit::formats::perf {

namespace {

constexpr std::size_t kMostText = 4096;  // PATH_MAX; a record has 65535 bytes at most
constexpr unsigned kMaxShift = 31;       // so that a remainder times time_mult fits into 64 bits
constexpr std::uint32_t kReadable = 1;   // PROT_*
constexpr std::uint32_t kExecutable = 4;
constexpr std::uint32_t kPrivate = 2;  // MAP_*
constexpr std::size_t kBuildIdBytes = 20;

// Order of records at the same time. A name at the time of exec() belongs to the program before it.
enum Rank : std::uint8_t { BEGINS = 0, NAMES = 1, EXECUTES = 2, MAPS = 3, RUNS = 4, TRACES = 5, ENDS = 6 };

unsigned digit_of(char letter) {
  return static_cast<unsigned>(letter <= '9' ? letter - '0' : letter - 'a' + 10);
}

}  // namespace

std::vector<std::uint8_t> bytes_of_hex(const std::string& hex) {
  std::vector<std::uint8_t> bytes;
  for (std::size_t i = 0; i + 1 < hex.size() && bytes.size() < kBuildIdBytes; i += 2)
    bytes.push_back(static_cast<std::uint8_t>(digit_of(hex[i]) << 4U | digit_of(hex[i + 1])));
  return bytes;
}

trace::Clock written_clock(const trace::Clock& known) {
  trace::Clock clock = known;
  if (known.perf_time_known && known.time_mult != 0 && known.time_shift <= kMaxShift) return clock;
  clock.perf_time_known = true;
  clock.time_shift = 0;
  clock.time_mult = 1;
  clock.time_zero = 0;
  if (known.tsc_hz < 1000) return clock;
  for (unsigned shift = kMaxShift; shift > 0; --shift) {
    const std::uint64_t mult = (trace::kNsPerSecond << shift) / known.tsc_hz;
    if (mult == 0 || mult > 0xffff'ffff) continue;
    clock.time_shift = static_cast<std::uint16_t>(shift);
    clock.time_mult = static_cast<std::uint32_t>(mult);
    break;
  }
  return clock;
}

// ---- one record

RecordBytes::RecordBytes(std::uint32_t type, std::uint16_t misc) { add(type, misc, std::uint16_t{0}); }

RecordBytes& RecordBytes::text(const std::string& text) {
  const std::size_t size = std::min({text.size(), text.find('\0'), kMostText - 1});
  bytes_.insert(bytes_.end(), text.begin(), text.begin() + static_cast<std::ptrdiff_t>(size));
  do bytes_.push_back(0);
  while (bytes_.size() % 8 != 0);
  return *this;
}

base::Bytes RecordBytes::bytes() {
  bytes_[6] = static_cast<std::uint8_t>(bytes_.size());
  bytes_[7] = static_cast<std::uint8_t>(bytes_.size() >> 8U);
  return bytes_;
}

// ---- all

// The first nanosecond that converts to a TSC not before `tsc`: times read from perf.data are written
// unchanged. 0 before perf's clock began: its time is negative there.
std::uint64_t Records::ns(std::uint64_t tsc) const noexcept {
  if (tsc == trace::kTscMin) return 0;
  constexpr unsigned kMostSteps = 3;  // both conversions round down
  std::uint64_t ns = trace::perf_ns_from_tsc(clock_, tsc);
  for (unsigned step = 0; step < kMostSteps; ++step) {
    if (static_cast<std::int64_t>(trace::perf_tsc_from_ns(clock_, ns) - tsc) >= 0) break;
    ++ns;
  }
  return static_cast<std::int64_t>(ns) < 0 ? 0 : ns;
}

void Records::put(RecordBytes& record, const Stamp& stamp, std::uint8_t rank) {
  const std::uint64_t when = ns(stamp.tsc);
  record.id(stamp.pid).id(stamp.tid).add(when).id(stamp.cpu).add(std::uint32_t{0}, kEventId);
  const base::Bytes bytes = record.bytes();
  entries_.push_back({when, rank, static_cast<std::uint16_t>(bytes.size()), bytes_.size()});
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  if (when == 0) return;
  first_ns_ = first_ns_ == 0 ? when : std::min(first_ns_, when);
  last_ns_ = std::max(last_ns_, when);
}

void Records::fork(const Stamp& stamp, std::int64_t parent_pid, std::int64_t parent_tid) {
  RecordBytes record(FORK, 0);
  record.id(stamp.pid).id(parent_pid).id(stamp.tid).id(parent_tid).add(ns(stamp.tsc));
  put(record, {parent_pid, parent_tid, stamp.cpu, stamp.tsc}, BEGINS);
}

void Records::exit(const Stamp& stamp) {
  RecordBytes record(EXIT, 0);
  record.id(stamp.pid).id(stamp.pid).id(stamp.tid).id(stamp.tid).add(ns(stamp.tsc));
  put(record, stamp, ENDS);
}

void Records::comm(const Stamp& stamp, const std::string& name, bool exec) {
  RecordBytes record(COMM, exec ? kMiscCommExec : std::uint16_t{0});
  record.id(stamp.pid).id(stamp.tid).text(name);
  put(record, stamp, exec ? EXECUTES : NAMES);
}

void Records::map(const Stamp& stamp, const WrittenMapping& mapping, bool kernel) {
  std::vector<std::uint8_t> id = bytes_of_hex(mapping.build_id);
  const std::uint16_t mode = kernel ? kCpuModeKernel : kCpuModeUser;
  RecordBytes record(MMAP2, static_cast<std::uint16_t>(mode | (id.empty() ? 0U : kMiscMmapBuildId)));
  record.id(stamp.pid).id(stamp.tid).add(mapping.address, mapping.size, mapping.file_offset);
  record.add(static_cast<std::uint32_t>(id.size()));  // one byte, three reserved; else the device's number
  id.resize(kBuildIdBytes);
  for (const std::uint8_t byte : id) record.add(byte);
  record.add(kReadable | kExecutable, kPrivate).text(mapping.path);
  put(record, stamp, MAPS);
}

void Records::itrace_start(const Stamp& stamp) {
  RecordBytes record(ITRACE_START, 0);
  record.id(stamp.pid).id(stamp.tid);
  put(record, stamp, RUNS);
}

void Records::switch_to(const Stamp& from, const Stamp& to, trace::Departure departure) {
  const bool preempted = departure == trace::Departure::PREEMPTED;
  const unsigned misc = kCpuModeUser | kMiscSwitchOut | (preempted ? kMiscSwitchOutPreempt : 0U);
  RecordBytes out(SWITCH_CPU_WIDE, static_cast<std::uint16_t>(misc));
  out.id(to.pid).id(to.tid);
  put(out, from, RUNS);
  RecordBytes in(SWITCH_CPU_WIDE, kCpuModeUser);
  in.id(from.pid).id(from.tid);
  put(in, to, RUNS);
}

void Records::aux(const Stamp& stamp, std::uint64_t begin, std::uint64_t size, std::uint64_t flags) {
  RecordBytes record(AUX, 0);
  record.add(begin, size, flags);
  put(record, stamp, TRACES);
}

void Records::for_each(const std::function<void(base::Bytes)>& each) {
  std::ranges::stable_sort(
      entries_, [](const Entry& a, const Entry& b) { return a.ns != b.ns ? a.ns < b.ns : a.rank < b.rank; });
  for (const Entry& entry : entries_) each(base::Bytes(bytes_).subspan(entry.at, entry.size));
}

}  // namespace ptkit::formats::perf
