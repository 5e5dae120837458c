#include "formats/perf_ids.h"

#include <algorithm>
#include <tuple>

namespace ptkit::formats::perf {

namespace {

constexpr std::size_t kMostNameBytes = 256;  // each use of a counter has its event's name

}  // namespace

// Count, then number, place in perf's list, CPU and thread of each; perhaps process and virtual processor of
// each behind all of them.
bool Ids::take_index(base::Bytes body) {
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
    Place place;
    place.cpu = static_cast<std::int32_t>(fields.u64());
    place.tid = static_cast<std::int32_t>(fields.u64());
    if (has_machines) {
      place.machine_pid = static_cast<std::uint32_t>(machines.u64());
      machines.skip(8);
    }
    places_.insert_or_assign(id, place);
  }
  return true;
}

// Count and size of attributes; then of each: attribute, count of numbers, text with its size, numbers.
void Ids::take_names(base::Bytes description) {
  Fields fields(description);
  const std::uint32_t count = fields.u32();
  const std::uint32_t attr_bytes = fields.u32();
  for (std::uint32_t i = 0; i < count && fields.ok(); ++i) {
    fields.skip(attr_bytes);
    const std::uint32_t ids = fields.u32();
    const std::uint32_t size = fields.u32();
    names_.push_back(Fields(fields.take_bytes(size)).text().substr(0, kMostNameBytes));
    for (std::uint32_t j = 0; j < ids && fields.left() >= 8; ++j)
      name_of_.insert_or_assign(fields.u64(), names_.size() - 1);
  }
}

bool Ids::take_counter(base::Bytes body, const Trailer& who) {
  Fields fields(body);
  CounterUse use;
  use.ns = who.time;
  use.cpu = who.cpu;
  use.tid = who.tid;
  use.counter = fields.u64();
  use.id = who.id;
  if (!fields.ok()) return false;
  if (use.id == 0) {
    ++without_event_;
  } else {
    counters_.push_back(std::move(use));
  }
  return true;
}

void Ids::complete(Trailer& who) const {
  const auto found = places_.find(who.id);
  if (found == places_.end() || found->second.machine_pid != 0) return;
  if (who.cpu < 0) who.cpu = std::max(found->second.cpu, trace::kNoId);
  if (who.tid < 0) who.tid = std::max(found->second.tid, trace::kNoId);
}

bool Ids::is_of_guest(const Trailer& who) {
  const auto found = places_.find(who.id);
  if (found == places_.end() || found->second.machine_pid == 0) return false;
  ++guests_[found->second.machine_pid];
  return true;
}

// The kernel tells again and again what did not change.
std::vector<CounterUse> Ids::counters() const {
  std::vector<CounterUse> out;
  std::vector<CounterUse> all = counters_;
  std::ranges::stable_sort(all, {}, &CounterUse::ns);
  std::map<std::tuple<std::int64_t, std::int64_t, std::uint64_t>, std::uint64_t> now;
  for (CounterUse& use : all) {
    const auto [last, added] = now.try_emplace({use.cpu, use.tid, use.counter}, use.id);
    if (!added && std::exchange(last->second, use.id) == use.id) continue;
    if (const auto name = name_of_.find(use.id); name != name_of_.end()) use.event = names_[name->second];
    out.push_back(std::move(use));
  }
  return out;
}

std::vector<std::string> Ids::problems() const {
  std::vector<std::string> out;
  if (without_event_ != 0) {
    out.push_back(
        std::to_string(without_event_) +
        " records name a counter of PEBS, but not its event (AUX_OUTPUT_HW_ID without an id): whose "
        "records are in the trace is not known.");
  }
  for (const auto& [pid, records] : guests_) {
    out.push_back(std::to_string(records) + " records of the virtual machine of process " +
                  std::to_string(pid) + " are not read: what ran in it is not told apart.");
  }
  return out;
}

}  // namespace ptkit::formats::perf
