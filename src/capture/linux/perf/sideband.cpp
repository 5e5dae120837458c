#include "capture/linux/perf/sideband.h"

#include <cerrno>
#include <cstring>
#include <map>
#include <utility>

#include "base/addresses.h"
#include "capture/linux/perf/config.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

using trace::WarningCode;

namespace {

constexpr int kAnyThread = -1;
constexpr const char* kMmap = "mmap";
constexpr std::uint64_t kTrailer =
    PERF_SAMPLE_IDENTIFIER | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CPU;

formats::perf::Attr attr_of_records() {
  formats::perf::Attr out;
  out.type = PERF_TYPE_SOFTWARE;
  out.config = PERF_COUNT_SW_DUMMY;
  out.sample_type = kTrailer;
  out.flags = std::uint64_t{1} << formats::perf::kSampleIdAll;
  return out;
}

}  // namespace

perf_event_attr dummy_event(std::uint64_t sample_type) noexcept {
  perf_event_attr attr{};
  attr.size = sizeof attr;
  attr.type = PERF_TYPE_SOFTWARE;
  attr.config = PERF_COUNT_SW_DUMMY;
  attr.sample_type = sample_type;
  attr.sample_id_all = attr.exclude_kernel = attr.exclude_hv = 1;
  return attr;
}

perf_event_attr sideband_event(std::uint64_t sample_type) noexcept {
  perf_event_attr attr = dummy_event(sample_type);
  attr.mmap = attr.mmap2 = attr.build_id = 1;
  attr.comm = attr.comm_exec = attr.task = 1;
  return attr;
}

int open_sideband_event(PerfPort& port, perf_event_attr attr, int tid, int cpu) {
  int event = port.open(attr, tid, cpu);
  if (event == -EINVAL && attr.build_id != 0) {
    attr.build_id = 0;
    event = port.open(attr, tid, cpu);
  }
  return event;
}

perf_event_attr PerfSideband::event() const noexcept {
  if (subject_ == Subject::PROCESSES) return sideband_event(kTrailer);
  perf_event_attr attr = dummy_event(kTrailer);
  attr.ksymbol = attr.text_poke = 1;
  return attr;
}

bool PerfSideband::is_subject(SystemRecord::Kind kind) const noexcept {
  using Kind = SystemRecord::Kind;
  if (subject_ == Subject::KERNEL_CODE) return kind == Kind::KSYMBOL || kind == Kind::TEXT_POKE;
  // The driver records when threads begin and end.
  return kind == Kind::EXEC || kind == Kind::COMM || kind == Kind::MMAP;
}

void PerfSideband::open(std::vector<std::uint32_t> cpus, std::uint64_t bytes) {
  if (cpus.empty()) cpus = online_cpus(*port_);
  asked_bytes_ = bytes_ = bytes;
  auto error = open_all(cpus);
  // Unprivileged users may lock little memory (kernel.perf_event_mlock_kb).
  while (error && error->call == kMmap && bytes_ > base::kPageBytes) {
    bytes_ /= 2;
    error = open_all(cpus);
  }
  if (error) error_ = std::string(error->call) + ": " + std::strerror(error->number);
}

// If one of the events fails, none stays open.
std::optional<PerfSideband::CallError> PerfSideband::open_all(const std::vector<std::uint32_t>& cpus) {
  for (const std::uint32_t cpu : cpus) {
    if (auto error = open_one(static_cast<int>(cpu))) {
      close_all();
      return error;
    }
  }
  return {};
}

std::optional<PerfSideband::CallError> PerfSideband::open_one(int cpu) {
  const int opened = open_sideband_event(*port_, event(), kAnyThread, cpu);
  if (opened < 0) return CallError{"perf_event_open", -opened};
  int error = 0;
  auto ring = PerfBuffer::map(*port_, opened, kAnyThread, cpu, {bytes_, 0, false}, error);
  if (!ring) {
    port_->close(opened);
    return CallError{kMmap, error};
  }
  ring->set_attr(attr_of_records(), /*switches=*/false);
  rings_.push_back(std::move(*ring));
  return {};
}

void PerfSideband::close_all() {
  for (PerfBuffer& ring : rings_) {
    ring.unmap(*port_);
    port_->close(ring.event());
  }
  rings_.clear();
}

std::optional<base::Failure> PerfSideband::drain(
    BundleOutput& output, const std::function<void(std::uint32_t cpu, SystemRecord record)>& take) {
  std::vector<SystemRecord> fresh;
  std::vector<FiredEvent> fired;
  for (PerfBuffer& ring : rings_) {
    fresh.clear();
    if (auto failure = ring.drain(output, fresh, fired)) return failure;
    for (SystemRecord& record : fresh) {
      if (is_subject(record.kind)) take(static_cast<std::uint32_t>(ring.cpu()), std::move(record));
    }
  }
  return {};
}

void PerfSideband::wait(std::vector<int> files, std::chrono::milliseconds limit) {
  for (const PerfBuffer& ring : rings_) files.push_back(ring.event());
  static_cast<void>(port_->wait(files, limit));
}

std::vector<trace::Warning> PerfSideband::warnings() const {
  std::vector<trace::Warning> out;
  const bool processes = subject_ == Subject::PROCESSES;
  if (!error_.empty()) {
    out.push_back(processes ? warn(WarningCode::MAPPINGS_NOT_RECORDED, error_)
                            : warn(WarningCode::KERNEL_CHANGES_UNKNOWN));
  }
  if (rings_.empty()) return out;
  if (bytes_ < asked_bytes_) out.push_back(warn(WarningCode::RINGS_LIMIT_LOCKED, bytes_ >> 10U));
  std::uint64_t bad = 0;
  std::map<std::uint32_t, std::uint64_t> unknown;
  for (const PerfBuffer& ring : rings_) {
    bad += ring.counts().bad_records;
    for (const auto& [type, count] : ring.counts().unknown) unknown[type] += count;
  }
  if (bad != 0) out.push_back(warn(WarningCode::RECORDS_INVALID, bad));
  for (const auto& [type, count] : unknown)
    out.push_back(warn(WarningCode::RECORD_TYPE_UNKNOWN, count, type));
  if (processes && !rings_.front().clock().perf_time_known) out.push_back(warn(WarningCode::CLOCK_NOT_TSC));
  return out;
}

std::uint64_t PerfSideband::lost_records() const noexcept {
  std::uint64_t sum = 0;
  for (const PerfBuffer& ring : rings_) sum += ring.counts().lost_records;
  return sum;
}

}  // namespace ptkit::capture
