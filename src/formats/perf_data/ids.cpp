#include "formats/perf_data/ids.h"

#include <algorithm>
#include <tuple>

#include "trace/warning_codes.h"

namespace ptkit::formats::perf {

using trace::WarningCode;

namespace {

constexpr std::size_t kMostNameBytes = 256;  // each CounterUse copies its event's name

}  // namespace

// Layout (struct perf_record_id_index): count; for each: id, index, CPU, thread; then, in newer files, for
// each: process of the virtual machine, virtual CPU.
bool Ids::read_id_index(base::Bytes body) {
  constexpr std::size_t kEntryBytes = 32;
  constexpr std::size_t kMachineBytes = 16;
  Fields fields(body);
  const std::uint64_t count = fields.u64();
  if (!fields.ok() || count > fields.left() / kEntryBytes) return false;
  const auto entries = static_cast<std::size_t>(count);
  Fields machines(body, 8 + entries * kEntryBytes);
  const bool has_machines = machines.left() >= entries * kMachineBytes;
  for (std::size_t i = 0; i < entries; ++i) {
    const std::uint64_t id = fields.u64();
    fields.skip(8);
    EventTarget target;
    target.cpu = static_cast<std::int32_t>(fields.u64());
    target.tid = static_cast<std::int32_t>(fields.u64());
    if (has_machines) {
      target.machine_pid = static_cast<std::uint32_t>(machines.u64());
      machines.skip(8);
    }
    targets_.insert_or_assign(id, target);
  }
  return true;
}

// Layout (tools/perf/util/header.c, write_event_desc): number and size of attributes; for each: attribute,
// number of ids, name with its size, ids.
void Ids::read_event_desc(base::Bytes description) {
  Fields fields(description);
  const std::uint32_t count = fields.u32();
  const std::uint32_t attr_bytes = fields.u32();
  for (std::uint32_t i = 0; i < count && fields.ok(); ++i) {
    fields.skip(attr_bytes);
    const std::uint32_t ids = fields.u32();
    const std::uint32_t size = fields.u32();
    names_.push_back(Fields(fields.take_bytes(size)).text().substr(0, kMostNameBytes));
    for (std::uint32_t j = 0; j < ids && fields.left() >= 8; ++j)
      name_index_.insert_or_assign(fields.u64(), names_.size() - 1);
  }
}

bool Ids::add_counter(base::Bytes body, const Trailer& trailer) {
  Fields fields(body);
  CounterUse use;
  use.ns = trailer.time;
  use.cpu = trailer.cpu;
  use.tid = trailer.tid;
  use.counter = fields.u64();
  use.id = trailer.id;
  if (!fields.ok()) return false;
  if (use.id == 0) {
    ++without_event_;
  } else {
    counters_.push_back(std::move(use));
  }
  return true;
}

void Ids::complete(Trailer& trailer) const {
  const auto found = targets_.find(trailer.id);
  if (found == targets_.end() || found->second.machine_pid != 0) return;
  if (trailer.cpu < 0) trailer.cpu = std::max(found->second.cpu, trace::kNoId);
  if (trailer.tid < 0) trailer.tid = std::max(found->second.tid, trace::kNoId);
}

bool Ids::is_of_guest(const Trailer& trailer) {
  const auto found = targets_.find(trailer.id);
  if (found == targets_.end() || found->second.machine_pid == 0) return false;
  ++guests_[found->second.machine_pid];
  return true;
}

// The kernel repeats records without a change. These are left out.
std::vector<CounterUse> Ids::counters() const {
  std::vector<CounterUse> out;
  std::vector<CounterUse> all = counters_;
  std::ranges::stable_sort(all, {}, &CounterUse::ns);
  std::map<std::tuple<std::int64_t, std::int64_t, std::uint64_t>, std::uint64_t> now;
  for (CounterUse& use : all) {
    const auto [last, added] = now.try_emplace({use.cpu, use.tid, use.counter}, use.id);
    if (!added && std::exchange(last->second, use.id) == use.id) continue;
    if (const auto name = name_index_.find(use.id); name != name_index_.end())
      use.event = names_[name->second];
    out.push_back(std::move(use));
  }
  return out;
}

std::vector<trace::Warning> Ids::warnings() const {
  std::vector<trace::Warning> out;
  if (without_event_ != 0) out.push_back(warn(WarningCode::PEBS_EVENT_UNKNOWN, without_event_));
  for (const auto& [pid, records] : guests_)
    out.push_back(warn(WarningCode::GUEST_RECORDS_SKIPPED, records, pid));
  return out;
}

}  // namespace ptkit::formats::perf
