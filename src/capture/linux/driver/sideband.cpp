#include "capture/linux/driver/sideband.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <iterator>
#include <optional>

#include "capture/linux/process/process.h"
#include "ptkit/ptkit_ioctl.h"

namespace ptkit::capture {

namespace {

constexpr std::size_t kAlignment = 8;

// A contiguous copy: a record may wrap around.
std::vector<std::uint8_t> copy(base::Bytes ring, std::uint64_t from, std::size_t bytes) {
  const auto position = static_cast<std::size_t>(from % ring.size());
  const base::Bytes head = ring.subspan(position, std::min(bytes, ring.size() - position));
  std::vector<std::uint8_t> out(head.begin(), head.end());
  const base::Bytes rest = ring.first(bytes - head.size());
  out.insert(out.end(), rest.begin(), rest.end());
  return out;
}

// The structure at the beginning of a record. Fields beyond the end of a short record are zero.
template <typename T>
T read_as(base::Bytes record) {
  T out{};
  std::memcpy(&out, record.data(), std::min(record.size(), sizeof out));
  return out;
}

void read_module(base::Bytes record, SystemRecord& out) {
  const auto module = read_as<ptkit_record_module>(record);
  out.address = module.address;
  out.bytes = module.bytes;
  out.text =
      std::string(std::begin(module.name), std::find(std::begin(module.name), std::end(module.name), 0));
}

void set_space(const ptkit_record_space& space, SystemRecord& out) {
  out.cr3_known = true;
  out.kernel_cr3 = space.kernel_cr3;
  out.user_cr3 = space.user_cr3;
}

void read_fork(base::Bytes record, SystemRecord& out) {
  const auto fork = read_as<ptkit_record_fork>(record);
  set_space(fork.space, out);
  out.parent_pid = fork.parent_pid;
  out.parent_tid = fork.parent_tid;
}

std::optional<SystemRecord::Kind> kind_of(std::uint16_t type) {
  using Kind = SystemRecord::Kind;
  switch (type) {
    case PTKIT_RECORD_SWITCH:
      return Kind::SWITCH;
    case PTKIT_RECORD_EXEC:
      return Kind::PROGRAM;
    case PTKIT_RECORD_SPACE:
      return Kind::SPACE;
    case PTKIT_RECORD_FORK:
      return Kind::FORK;
    case PTKIT_RECORD_EXIT:
      return Kind::EXIT;
    case PTKIT_RECORD_MODULE:
      return Kind::MODULE;
    case PTKIT_RECORD_MODULE_GONE:
      return Kind::MODULE_GONE;
    case PTKIT_RECORD_LOST:
      return Kind::LOST;
    default:
      return {};
  }
}

void read_body(base::Bytes record, SystemRecord& out) {
  using Kind = SystemRecord::Kind;
  switch (out.kind) {
    case Kind::SWITCH:
    case Kind::PROGRAM:
    case Kind::SPACE:
      return set_space(read_as<ptkit_record_space>(record), out);
    case Kind::FORK:
      return read_fork(record, out);
    case Kind::EXIT:
      out.status = exit_status_of(read_as<ptkit_record_exit>(record).status);
      return;
    case Kind::LOST:
      out.count = read_as<ptkit_record_lost>(record).count;
      return;
    default:
      return read_module(record, out);
  }
}

}  // namespace

DriverRecords read_records(base::Bytes ring, std::uint64_t from, std::uint64_t to) {
  DriverRecords out;
  out.read_to = to;
  if (ring.empty() || to < from || to - from > ring.size()) {
    out.bad_bytes = to - from;
    return out;
  }
  while (to - from >= sizeof(ptkit_record)) {
    const std::vector<std::uint8_t> head = copy(ring, from, sizeof(ptkit_record));
    const auto record = read_as<ptkit_record>(head);
    if (record.size < sizeof record || record.size % kAlignment != 0 || record.size > to - from) break;
    const std::vector<std::uint8_t> all = copy(ring, from, record.size);
    from += record.size;
    const auto kind = kind_of(record.type);
    if (!kind) {
      ++out.unknown;
      continue;
    }
    SystemRecord one;
    one.kind = *kind;
    one.cpu = record.cpu;
    one.tsc = record.tsc;
    one.pid = record.pid;
    one.tid = record.tid;
    read_body(all, one);
    out.records.push_back(std::move(one));
  }
  out.bad_bytes = to - from;
  return out;
}

}  // namespace ptkit::capture
