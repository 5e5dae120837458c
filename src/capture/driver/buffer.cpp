#include "capture/driver/buffer.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include "base/addresses.h"

namespace ptkit::capture {

namespace {

using base::kPageBytes;
constexpr std::array<std::uint8_t, 16> kPsb{0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                                            0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};

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

std::optional<base::Failure> DriverBuffer::read_status(ptkit_status& status) {
  status = {};
  status.cpu = cpu_;
  if (const int error = port_->request(PTKIT_STATUS, &status); error != 0)
    return failed("PTKIT_STATUS", cpu_, error);
  counts_.cleared = counts_.cleared || (status.flags & PTKIT_STATUS_CLEARED) != 0;
  if (status.error == -ENOMEM)
    counts_.lost_children = true;
  else if (status.error != 0)
    counts_.error = -status.error;
  return {};
}

void DriverBuffer::write_trace(BundleOutput& output, std::uint64_t from, std::uint64_t to) {
  counts_.bytes += to - from;
  while (from < to) {
    const auto position = static_cast<std::size_t>(from % data_.size());
    const std::size_t part = std::min<std::size_t>(to - from, data_.size() - position);
    output.data(stream_, data_.subspan(position, part));
    from += part;
  }
}

// The position where trace resumes after a full buffer that stopped tracing between two calls of drain():
//
//   previous_tail_         from        position (result)    to      previous_tail_ + size
//       |  trace (consumed)  |  trace     | PSB, trace        |             |
//
// Tracing stops at the end of a ToPA region, which is one page, and resumes with a PSB. The buffer's limit
// was the tail of the drain before the last one plus the size.
std::uint64_t DriverBuffer::find_restart(std::uint64_t from, std::uint64_t to) const {
  const std::uint64_t limit = previous_tail_ + data_.size();
  const std::uint64_t earliest = std::max(from, limit - std::min(limit, wakes_up_));
  for (std::uint64_t at = (earliest + kPageBytes - 1) / kPageBytes * kPageBytes; at < to; at += kPageBytes) {
    const auto position = static_cast<std::size_t>(at % data_.size());
    if (std::memcmp(data_.data() + position, kPsb.data(), kPsb.size()) == 0) return at;
  }
  return from;  // no PSB found: a loss too early omits rows, a loss too late gives wrong rows
}

void DriverBuffer::write_with_losses(BundleOutput& output, const ptkit_status& status, std::uint64_t from) {
  const bool more = status.stops != counts_.stops;
  counts_.stops = status.stops;
  const bool waits = (status.flags & PTKIT_STATUS_FULL) != 0;
  if (!more && !waits) return write_trace(output, from, status.head);
  const std::uint64_t at = waits ? status.head : find_restart(from, status.head);
  write_trace(output, from, at);
  if (at != last_loss_) output.loss(stream_, 0, base::Status::BUFFER_FULL);
  last_loss_ = at;
  write_trace(output, at, status.head);
}

std::optional<base::Failure> DriverBuffer::drain(BundleOutput& output, std::vector<SystemRecord>& records) {
  ptkit_status status{};
  if (auto failure = read_status(status)) return failure;
  ptkit_consume consume{};
  consume.cpu = cpu_;
  if (wakes_up_ != 0) {
    if (status.head < tail_ || status.head - tail_ > data_.size())
      return failed("its numbers are impossible", cpu_, EPROTO);
    write_with_losses(output, status, tail_);
    previous_tail_ = tail_;
    tail_ = consume.tail = status.head;
  }
  if (!sideband_.empty()) {
    DriverRecords read = read_records(sideband_, sideband_tail_, status.sideband_head);
    sideband_tail_ = consume.sideband_tail = read.read_to;
    counts_.lost_records = status.sideband_lost;
    counts_.bad_bytes += read.bad_bytes;
    std::move(read.records.begin(), read.records.end(), std::back_inserter(records));
  }
  if (consume.tail == 0 && consume.sideband_tail == 0) return {};
  if (const int error = port_->request(PTKIT_CONSUME, &consume); error != 0)
    return failed("PTKIT_CONSUME", cpu_, error);
  return {};
}

std::optional<base::Failure> DriverBuffer::collect(BundleOutput& output) {
  if (wakes_up_ != 0) return {};  // drain() reads the trace
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
  if (ring_) {
    collect_ring(output, newest, (snapshot.flags & PTKIT_STATUS_LAPPED) != 0, snapshot.position);
    return {};
  }
  const base::Bytes fresh = base::Bytes(newest).subspan(std::min<std::size_t>(tail_, newest.size()));
  output.data(stream_, fresh);
  counts_.bytes += fresh.size();
  tail_ = newest.size();
  if ((snapshot.flags & PTKIT_STATUS_FULL) != 0 && last_loss_ != tail_) {
    ++counts_.stops;
    last_loss_ = tail_;
    output.loss(stream_, 0, base::Status::BUFFER_FULL);
  }
  return {};
}

void DriverBuffer::collect_ring(BundleOutput& output, const std::vector<std::uint8_t>& newest, bool lapped,
                                std::uint64_t position) {
  const SnapshotDelta::NewBytes fresh = snapshots_.take(newest, lapped, position);
  if (fresh.lost) output.loss(stream_, 0, base::Status::RING_WRAPPED);
  output.data(stream_, fresh.bytes);
  counts_.bytes += fresh.bytes.size();
}

}  // namespace ptkit::capture
