#include "capture/linux/driver/buffer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

namespace ptkit::capture {

namespace {

base::Failure failed(const char* what, std::uint32_t cpu, int error) {
  return {base::Status::UNSUPPORTED, 0,
          std::string("processor ") + std::to_string(cpu) + ": the driver failed (" + what +
              "): " + std::strerror(error)};
}

}  // namespace

base::Result<std::optional<DriverBuffer>> DriverBuffer::open(DriverPort& port, const ptkit_config& config,
                                                             std::uint32_t cpu) {
  ptkit_buffer buffer{};
  buffer.cpu = cpu;
  if (port.request(PTKIT_BUFFER, &buffer) != 0) return std::optional<DriverBuffer>();
  DriverBuffer out(port, config, cpu);
  out.data_ = port.map(buffer.data_offset, buffer.data_bytes);
  if (out.data_.empty()) return failed("mmap", cpu, errno);
  if (buffer.sideband_bytes != 0) {
    out.sideband_ = port.map(buffer.sideband_offset, buffer.sideband_bytes);
    if (out.sideband_.empty()) return failed("mmap of sideband", cpu, errno);
  }
  return std::optional<DriverBuffer>(std::move(out));
}

std::string DriverBuffer::label() const {
  return tid_ != 0 ? "Thread " + std::to_string(tid_) : "CPU " + std::to_string(cpu_);
}

std::optional<base::Failure> DriverBuffer::read_status(ptkit_status& status) {
  status = {};
  status.cpu = cpu_;
  if (const int error = port_->request(PTKIT_STATUS, &status); error != 0)
    return failed("PTKIT_STATUS", cpu_, error);
  counts_.cleared = counts_.cleared || (status.flags & PTKIT_STATUS_CLEARED) != 0;
  // A write of TraceEn faults in VMX operation, if VMXON clears it.
  counts_.waits = (status.flags & PTKIT_STATUS_CLEARED) != 0 && status.error == -EIO;
  if (status.error == -ENOMEM)
    counts_.lost_children = true;
  else if (status.error != 0 && !counts_.waits)
    counts_.error = -status.error;
  return {};
}

void DriverBuffer::write(BundleOutput& output, base::Bytes bytes, std::vector<SystemRecord>& records) {
  if (branches_) return write_branches(output, bytes, records);
  output.data(stream_, bytes);
  counts_.bytes += bytes.size();
}

void DriverBuffer::write_branches(BundleOutput& output, base::Bytes bytes,
                                  std::vector<SystemRecord>& records) {
  for (const BranchStretch& stretch : branches_->take(bytes)) {
    SystemRecord owner;
    owner.kind = SystemRecord::Kind::SWITCH;
    owner.cpu = cpu_;
    owner.tsc = stretch.since;
    owner.pid = stretch.pid;
    owner.tid = stretch.tid;
    owner.offset = counts_.bytes;
    records.push_back(std::move(owner));
    const base::Bytes data(reinterpret_cast<const std::uint8_t*>(stretch.records.data()),
                           stretch.records.size() * sizeof(trace::BranchRecord));
    output.data(stream_, data);
    counts_.bytes += data.size();
  }
}

void DriverBuffer::write_loss(BundleOutput& output, base::Status cause) {
  output.loss(stream_, 0, cause);
  if (branches_) branches_->interrupt();
}

// A branch record may wrap at the end of the buffer.
void DriverBuffer::write_trace(BundleOutput& output, std::uint64_t from, std::uint64_t to,
                               std::vector<SystemRecord>& records) {
  const auto position = static_cast<std::size_t>(from % data_.size());
  const base::Bytes first =
      data_.subspan(position, std::min<std::size_t>(to - from, data_.size() - position));
  const base::Bytes second = data_.first(to - from - first.size());
  if (second.empty() || !branches_) {
    if (!first.empty()) write(output, first, records);
    if (!second.empty()) write(output, second, records);
    return;
  }
  std::vector<std::uint8_t> all(first.begin(), first.end());
  all.insert(all.end(), second.begin(), second.end());
  write(output, all, records);
}

void DriverBuffer::write_with_losses(BundleOutput& output, const ptkit_status& status, std::uint64_t from,
                                     std::vector<SystemRecord>& records) {
  counts_.stops = status.stops;
  for (const Interruption& one : interruptions_.take(status, std::exchange(pauses_, {}))) {
    const std::uint64_t at = std::clamp(one.position, from, status.head);
    write_trace(output, from, at, records);
    if (one.loss)
      write_loss(output, *one.loss);
    else
      branches_->interrupt();
    from = at;
  }
  write_trace(output, from, status.head, records);
}

std::optional<base::Failure> DriverBuffer::note_pause() {
  if (port_ == nullptr || !branches_) return {};
  if (wakes_up_ == 0) {
    branches_->interrupt();  // collect() has read all branches before, or will begin anew
    return {};
  }
  ptkit_status status{};
  if (auto failure = read_status(status)) return failure;
  pauses_.push_back(status.head);
  return {};
}

void DriverBuffer::read_sideband(const ptkit_status& status, std::vector<SystemRecord>& records) {
  DriverRecords read = read_records(sideband_, sideband_tail_, status.sideband_head);
  sideband_tail_ = read.read_to;
  counts_.lost_records = status.sideband_lost;
  counts_.bad_bytes += read.bad_bytes;
  for (SystemRecord& record : read.records) {
    // The trace of a thread is its own, and branches have marks with their threads.
    const bool owned = tid_ != 0 || branches_;
    if (!owned || record.kind != SystemRecord::Kind::SWITCH) records.push_back(std::move(record));
  }
}

std::optional<base::Failure> DriverBuffer::drain(BundleOutput& output, std::vector<SystemRecord>& records) {
  if (port_ == nullptr) return {};
  ptkit_status status{};
  if (auto failure = read_status(status)) return failure;
  if (std::exchange(late_, false)) output.loss(stream_, 0, base::Status::NOT_TRACED);
  if ((status.flags & PTKIT_STATUS_REFUSED) != 0 && !std::exchange(counts_.refused, true))
    output.loss(stream_, 0, base::Status::NOT_TRACED);
  ptkit_consume consume{};
  consume.cpu = cpu_;
  if (wakes_up_ != 0) {
    if (status.head < tail_ || status.head - tail_ > data_.size())
      return failed("its numbers are impossible", cpu_, EPROTO);
    write_with_losses(output, status, tail_, records);
    tail_ = consume.tail = status.head;
  }
  if (!sideband_.empty()) {
    read_sideband(status, records);
    consume.sideband_tail = sideband_tail_;
  }
  if (consume.tail == 0 && consume.sideband_tail == 0) return {};
  if (const int error = port_->request(PTKIT_CONSUME, &consume); error != 0)
    return failed("PTKIT_CONSUME", cpu_, error);
  return {};
}

std::optional<base::Failure> DriverBuffer::collect(BundleOutput& output, std::vector<SystemRecord>& records) {
  if (port_ == nullptr || wakes_up_ != 0) return {};  // drain() reads the trace
  std::vector<std::uint8_t> newest(data_.size());
  ptkit_snapshot snapshot{};
  snapshot.cpu = cpu_;
  snapshot.address = reinterpret_cast<std::uintptr_t>(newest.data());
  snapshot.bytes = newest.size();
  if (const int error = port_->request(PTKIT_SNAPSHOT, &snapshot); error != 0)
    return failed("PTKIT_SNAPSHOT", cpu_, error);
  if (snapshot.bytes > newest.size() || snapshot.position > newest.size())
    return failed("its numbers are impossible", cpu_, EPROTO);
  newest.resize(snapshot.bytes);
  // The pause before has found TraceEn clear: all bytes are from before.
  const bool cleared = (snapshot.flags & PTKIT_STATUS_CLEARED) != 0 && !std::exchange(cleared_, true);
  if (ring_) {
    collect_ring(output, newest, (snapshot.flags & PTKIT_STATUS_LAPPED) != 0, snapshot.position, records);
    if (cleared) write_loss(output, base::Status::NOT_TRACED);
    return {};
  }
  const base::Bytes fresh = base::Bytes(newest).subspan(std::min<std::size_t>(tail_, newest.size()));
  output.data(stream_, fresh);
  counts_.bytes += fresh.size();
  tail_ = newest.size();
  if (cleared) output.loss(stream_, 0, base::Status::NOT_TRACED);
  if ((snapshot.flags & PTKIT_STATUS_FULL) != 0 && last_loss_ != tail_) {
    ++counts_.stops;
    last_loss_ = tail_;
    output.loss(stream_, 0, base::Status::BUFFER_FULL);
  }
  return {};
}

void DriverBuffer::collect_ring(BundleOutput& output, const std::vector<std::uint8_t>& newest, bool lapped,
                                std::uint64_t position, std::vector<SystemRecord>& records) {
  const SnapshotDelta::NewBytes fresh = snapshots_.take(newest, lapped, position);
  if (fresh.lost) write_loss(output, base::Status::RING_WRAPPED);
  write(output, fresh.bytes, records);
}

}  // namespace ptkit::capture
