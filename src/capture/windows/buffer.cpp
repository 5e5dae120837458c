#include "capture/windows/buffer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "trace/branch_record.h"

namespace ptkit::capture {

WindowsBuffer::WindowsBuffer(WindowsPort& port, const ptkit_config& config,
                             const ptkit_windows_buffer& buffer)
    : port_(&port),
      cpu_(buffer.cpu),
      ring_(config.mode == PTKIT_MODE_RING),
      wakes_up_(config.wake_up_bytes != 0),
      data_bytes_(buffer.data_bytes),
      sideband_bytes_(buffer.sideband_bytes),
      snapshots_(buffer.data_bytes) {
  if (config.output == PTKIT_OUTPUT_BTS) branches_.emplace((config.flags & PTKIT_TRACE_KERNEL) != 0);
}

base::Result<std::optional<WindowsBuffer>> WindowsBuffer::open(WindowsPort& port, const ptkit_config& config,
                                                               std::uint32_t cpu) {
  ptkit_windows_buffer buffer{};
  buffer.cpu = cpu;
  if (exchange(port, PTKIT_WINDOWS_BUFFER, buffer) != 0) return std::optional<WindowsBuffer>();
  if (buffer.data_bytes == 0 || buffer.data_bytes > config.buffer_bytes) {
    return base::Failure{
        base::Status::UNSUPPORTED, 0,
        "CPU " + std::to_string(cpu) +
            ": the driver's buffer has an impossible size; install the driver that came with "
            "this program"};
  }
  return std::optional<WindowsBuffer>(WindowsBuffer(port, config, buffer));
}

base::Failure WindowsBuffer::failed(const char* what, std::uint32_t error) const {
  base::Failure failure = refused_by(*port_, what, error);
  failure.detail = "CPU " + std::to_string(cpu_) + ": " + failure.detail;
  return failure;
}

void WindowsBuffer::begin(formats::PtkWriter& writer, std::uint32_t number, trace::Stream whole) {
  stream_ = number;
  whole.cpu = cpu_;
  whole.name = "cpu " + std::to_string(cpu_);
  if (branches_) {
    whole.kind = trace::StreamKind::BRANCH_RECORDS;
    whole.switches_by_offset = true;
  }
  whole_ = std::move(whole);
  writer.stream(stream_, whole_);
}

void WindowsBuffer::write_switches(formats::PtkWriter& writer, std::vector<trace::Switch> switches) {
  if (switches.empty()) return;
  trace::Stream more = whole_;
  more.switches = std::move(switches);
  writer.stream(stream_, more);
}

WindowsBuffer::Problem WindowsBuffer::read_status(ptkit_status& status) {
  status = {};
  status.cpu = cpu_;
  if (const std::uint32_t error = exchange(*port_, PTKIT_WINDOWS_STATUS, status); error != 0)
    return failed("give the state of a CPU", error);
  counts_.cleared = counts_.cleared || (status.flags & PTKIT_STATUS_CLEARED) != 0;
  if (status.error > 0) counts_.reason = static_cast<std::uint32_t>(status.error);
  return {};
}

void WindowsBuffer::write(formats::PtkWriter& writer, base::Bytes bytes, const SpaceOf& space_of) {
  if (branches_) return write_branches(writer, bytes, space_of);
  writer.data(stream_, bytes);
  counts_.bytes += bytes.size();
}

void WindowsBuffer::write_threads(formats::PtkWriter& writer, const ThreadBetween& thread_between) {
  std::vector<trace::Switch> known;
  for (; !unattributed_.empty(); unattributed_.pop_front()) {
    const UnattributedBytes& next = unattributed_.front();
    known.push_back(next.owner);
    if (next.until == 0) continue;
    auto found = thread_between(next.owner.tsc, next.until);
    if (!found) {
      known.pop_back();
      break;
    }
    found->offset = next.owner.offset;
    known.back() = *found;
  }
  write_switches(writer, std::move(known));
}

// The driver marks only where it hands over. In between, the thread of the marks may have made space for
// another one: by the marks alone, rows have no thread, and the process of both marks.
void WindowsBuffer::write_branches(formats::PtkWriter& writer, base::Bytes bytes, const SpaceOf& space_of) {
  trace::Stream more = whole_;
  std::vector<trace::BranchRecord> records;
  for (BranchStretch& stretch : branches_->take(bytes)) {
    trace::Switch owner;
    owner.tsc = stretch.since;
    owner.offset = counts_.bytes + records.size() * sizeof(trace::BranchRecord);
    const bool same = stretch.end_pid < 0 || stretch.end_pid == stretch.pid;
    if (same && stretch.pid >= 0) owner.pid = stretch.pid;
    if (same && stretch.pid > 0) owner.space = space_of(stretch.pid);
    if (expects_threads_)
      unattributed_.push_back({owner, stretch.until});
    else
      more.switches.push_back(owner);
    records.insert(records.end(), stretch.records.begin(), stretch.records.end());
  }
  if (records.empty()) return;
  const base::Bytes data(reinterpret_cast<const std::uint8_t*>(records.data()),
                         records.size() * sizeof(trace::BranchRecord));
  writer.data(stream_, data);
  writer.stream(stream_, more);
  counts_.bytes += data.size();
}

void WindowsBuffer::write_loss(formats::PtkWriter& writer, base::Status cause) {
  writer.loss(stream_, 0, cause);
  if (branches_) branches_->interrupt();
}

// Copies [tail_, to): PTKIT_WINDOWS_READ copies across the end of the buffer.
WindowsBuffer::Problem WindowsBuffer::write_trace(formats::PtkWriter& writer, std::uint64_t to,
                                                  const SpaceOf& space_of) {
  if (to == tail_) return {};
  std::vector<std::uint8_t> bytes(static_cast<std::size_t>(to - tail_));
  ptkit_windows_read read{};
  read.cpu = cpu_;
  read.what = PTKIT_READ_DATA;
  read.offset = tail_ % data_bytes_;
  read.bytes = bytes.size();
  std::size_t written = 0;
  if (const auto error = port_->request(PTKIT_WINDOWS_READ, bytes_of(read), bytes, written); error != 0)
    return failed("copy trace", error);
  if (written != bytes.size()) return failed("copy all of the trace", 0);
  write(writer, bytes, space_of);
  tail_ = to;
  return {};
}

WindowsBuffer::Problem WindowsBuffer::drain(formats::PtkWriter& writer, const SpaceOf& space_of) {
  ptkit_status status{};
  if (auto failure = read_status(status)) return failure;
  if (!wakes_up_) return {};
  if (status.head < tail_ || status.head - tail_ > data_bytes_) return failed("count as it should", 0);
  if (status.head == tail_ && status.stops == counts_.stops) return {};
  counts_.stops = status.stops;
  for (const Interruption& one : interruptions_.take(status)) {
    if (auto failure = write_trace(writer, std::clamp(one.position, tail_, status.head), space_of))
      return failure;
    if (one.loss) write_loss(writer, *one.loss);
  }
  if (auto failure = write_trace(writer, status.head, space_of)) return failure;
  ptkit_consume consume{};
  consume.cpu = cpu_;
  consume.tail = tail_;
  std::size_t written = 0;
  const std::uint32_t error = port_->request(PTKIT_WINDOWS_CONSUME, bytes_of(consume), {}, written);
  if (error != 0) return failed("take back the room of its trace", error);
  return {};
}

WindowsBuffer::Problem WindowsBuffer::collect(formats::PtkWriter& writer, const SpaceOf& space_of) {
  if (wakes_up_) return {};
  ptkit_windows_snapshot ask{};
  ask.cpu = cpu_;
  std::vector<std::uint8_t> answer(sizeof(ptkit_windows_newest) + static_cast<std::size_t>(data_bytes_));
  std::size_t written = 0;
  if (const auto error = port_->request(PTKIT_WINDOWS_SNAPSHOT, bytes_of(ask), answer, written); error != 0)
    return failed("copy its ring", error);
  ptkit_windows_newest newest{};
  if (written >= sizeof newest) std::memcpy(&newest, answer.data(), sizeof newest);
  if (written < sizeof newest || newest.bytes != written - sizeof newest || newest.position > data_bytes_)
    return failed("count as it should", 0);
  const auto first = answer.begin() + sizeof newest;
  write_newest(writer, newest, {first, first + static_cast<std::ptrdiff_t>(newest.bytes)}, space_of);
  return {};
}

void WindowsBuffer::write_newest(formats::PtkWriter& writer, const ptkit_windows_newest& newest,
                                 const std::vector<std::uint8_t>& bytes, const SpaceOf& space_of) {
  if (ring_) {
    const bool lapped = (newest.flags & PTKIT_STATUS_LAPPED) != 0;
    const SnapshotDelta::NewBytes fresh = snapshots_.take(bytes, lapped, newest.position);
    if (fresh.lost) write_loss(writer, base::Status::RING_WRAPPED);
    write(writer, fresh.bytes, space_of);
    return;
  }
  write(writer, base::Bytes(bytes).subspan(std::min<std::size_t>(tail_, bytes.size())), space_of);
  tail_ = bytes.size();
  if ((newest.flags & PTKIT_STATUS_FULL) == 0 || std::exchange(full_, true)) return;
  ++counts_.stops;
  write_loss(writer, base::Status::BUFFER_FULL);
}

}  // namespace ptkit::capture
