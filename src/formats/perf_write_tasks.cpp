#include "formats/perf_write_tasks.h"

#include <algorithm>
#include <limits>

namespace ptkit::formats::perf {

namespace {

using trace::kNoId;
using trace::SidebandKind;

constexpr std::int64_t kLastId = 4'194'304;  // of Linux; perf looks processes up here that have lower ones
constexpr std::size_t kCommBytes = 15;       // of a thread's name (TASK_COMM_LEN)

// The process begins to have an address space of its own.
bool begins_image(const trace::Sideband& record) {
  return record.kind == SidebandKind::PROCESS || record.kind == SidebandKind::EXEC;
}

std::string comm_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1).substr(0, kCommBytes);
}

bool is_somebodys(const trace::Switch& one) { return one.tid != kNoId; }

// Whether switches tell of threads besides this one.
bool has_others(const trace::Stream& stream, std::int64_t tid) {
  return std::ranges::any_of(stream.switches,
                             [tid](const trace::Switch& one) { return is_somebodys(one) && one.tid != tid; });
}

// Whether some of a stream whose switches tell places is nobody's.
bool has_rest(const trace::Stream& stream) {
  return stream.switches.empty() || stream.switches.front().offset != 0 ||
         !std::ranges::all_of(stream.switches, &is_somebodys);
}

// When somebody ran in a space for the first time, as far as switches tell it.
std::map<trace::SpaceId, std::uint64_t> first_uses(const trace::TraceBundle& bundle) {
  std::map<trace::SpaceId, std::uint64_t> uses;
  for (const trace::Stream& stream : bundle.streams) {
    for (const trace::Switch& one : stream.switches) {
      const auto [found, added] = uses.emplace(one.space, one.tsc);
      if (!added) found->second = std::min(found->second, one.tsc);
    }
  }
  return uses;
}

// Of the times at which a process got a space, that of each space, the last one first: the nearest to the
// first use, as exec() tells a little late. Nobody may know when the first one began.
std::vector<std::uint64_t> nearest(std::vector<std::uint64_t> times, const std::vector<std::uint64_t>& uses) {
  std::vector<std::uint64_t> begins(uses.size(), trace::kTscMin);
  const auto distance = [](std::uint64_t a, std::uint64_t b) { return a < b ? b - a : a - b; };
  std::ranges::sort(times);
  for (std::size_t i = uses.size(); i-- > 0 && !times.empty();) {
    while (times.size() > 1 && distance(times[times.size() - 2], uses[i]) <= distance(times.back(), uses[i]))
      times.pop_back();
    if (i == 0 && times.back() > uses[i] && times.size() == 1 && uses.size() > 1) break;
    begins[i] = times.back();
    times.pop_back();
  }
  return begins;
}

}  // namespace

Tasks::Tasks(const trace::TraceBundle& bundle, std::vector<std::string>& notes) : bundle_(bundle) {
  const auto note = [this](std::int64_t id) { last_id_ = std::max(last_id_, id); };
  for (const trace::Space& space : bundle.spaces) note(space.pid);
  for (const trace::Sideband& record : bundle.sideband) note(std::max(record.pid, record.tid));
  for (const trace::Stream& stream : bundle.streams) {
    note(std::max(stream.pid, stream.tid));
    for (const trace::Switch& one : stream.switches) note(std::max(one.pid, one.tid));
  }
  note(kLastId);
  find_queues(notes);
  find_images(notes);
  name_threads();
}

std::int64_t Tasks::new_id() { return ++last_id_; }

// As far as the recording tells it.
Queue Tasks::queue_of(const trace::Stream& stream) const {
  Queue queue{stream.cpu, stream.pid, stream.tid};
  // perf shows branch records as one thread's, whatever the processor.
  const bool is_trace = stream.kind == trace::StreamKind::PROCESSOR_TRACE;
  if (!is_trace) queue.cpu = kNoId;
  if (is_trace && queue.cpu == kNoId && queue.tid == kNoId) {
    const auto first = std::ranges::find_if(stream.switches, &is_somebodys);
    if (first != stream.switches.end() && !has_others(stream, first->tid))
      queue = {kNoId, first->pid, first->tid};
  }
  if (queue.pid == kNoId && stream.space < bundle_.spaces.size())
    queue.pid = bundle_.spaces[stream.space].pid;
  if (queue.tid == kNoId && stream.switches.empty()) queue.tid = queue.pid;
  return queue;
}

void Tasks::find_queues(std::vector<std::string>& notes) {
  std::size_t made_up = 0;
  std::int64_t free_cpu = 0;
  for (const trace::Stream& stream : bundle_.streams) free_cpu = std::max(free_cpu, stream.cpu + 1);
  for (const trace::Stream& stream : bundle_.streams) {
    Queue queue = queue_of(stream);
    const bool is_trace = stream.kind == trace::StreamKind::PROCESSOR_TRACE;
    if (is_trace && queue.cpu == kNoId && has_others(stream, queue.tid)) {
      queue.cpu = free_cpu++;
      notes.push_back("Nobody knows the processor of stream '" + stream.name +
                      "'; perf tells by it who ran, so it is written as that of processor " +
                      std::to_string(queue.cpu) + ", which no other stream has.");
    }
    if (queue.tid == kNoId && (is_trace ? stream.switches.empty() || queue.cpu == kNoId : has_rest(stream))) {
      queue.tid = new_id();
      ++made_up;
    }
    if (queue.pid == kNoId) queue.pid = queue.tid;
    queues_.push_back(queue);
  }
  if (made_up != 0) {
    notes.push_back("Of " + std::to_string(made_up) + (made_up == 1 ? " stream" : " streams") +
                    " nobody knows the thread; perf needs one, so numbers that nothing else has were taken.");
  }
}

void Tasks::add_image(trace::SpaceId space, std::int64_t pid, std::uint64_t begin) {
  if (known_images_.emplace(space, pid).second) images_.push_back({space, pid, begin});
}

void Tasks::add_space(trace::SpaceId space, std::int64_t pid) {
  if (space >= bundle_.spaces.size()) space = trace::kAnySpace;
  const std::int64_t own = bundle_.spaces[space].pid;
  add_image(space, own != kNoId ? own : pid, trace::kTscMin);
}

// Spaces of a process begin with the fork or exec before their first use. Where that is not known, with a
// fork or an exec, if each of these made one, else with a fork alone; of the first one nobody may know.
void Tasks::find_images(std::vector<std::string>& notes) {
  std::map<std::int64_t, std::vector<std::uint64_t>> begins;
  std::map<std::int64_t, std::vector<std::uint64_t>> births;
  std::map<std::int64_t, std::vector<trace::SpaceId>> spaces;
  for (const trace::Sideband& record : bundle_.sideband) {
    if (begins_image(record)) begins[record.pid].push_back(record.tsc);
    if (record.kind == SidebandKind::PROCESS) births[record.pid].push_back(record.tsc);
  }
  for (std::size_t i = 0; i < bundle_.spaces.size(); ++i) {
    if (bundle_.spaces[i].pid != kNoId)
      spaces[bundle_.spaces[i].pid].push_back(static_cast<trace::SpaceId>(i));
  }
  const std::map<trace::SpaceId, std::uint64_t> uses = first_uses(bundle_);
  for (const auto& [pid, numbers] : spaces) {
    if (std::ranges::all_of(numbers, [&](trace::SpaceId number) { return uses.contains(number); })) {
      std::vector<trace::SpaceId> ordered = numbers;
      std::ranges::stable_sort(ordered, {}, [&](trace::SpaceId number) { return uses.at(number); });
      std::vector<std::uint64_t> first;
      first.reserve(ordered.size());
      for (const trace::SpaceId number : ordered) first.push_back(uses.at(number));
      std::vector<std::uint64_t> found = nearest(begins[pid], first);
      if (found[0] == trace::kTscMin && !births[pid].empty()) found[0] = births[pid].front();
      for (std::size_t i = 0; i < ordered.size(); ++i) add_image(ordered[i], pid, found[i]);
      continue;
    }
    const auto& times = begins[pid].size() == numbers.size() ? begins[pid] : births[pid];
    for (std::size_t i = 0; i < numbers.size(); ++i) {
      const std::size_t at = i + times.size() - numbers.size();  // from behind; wraps where nothing is known
      add_image(numbers[i], pid, at < times.size() ? times[at] : trace::kTscMin);
    }
  }
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    const trace::Stream& stream = bundle_.streams[i];
    if (queues_[i].pid != kNoId) add_space(stream.space, queues_[i].pid);
    for (const trace::Switch& one : stream.switches) {
      if (one.pid != kNoId) add_space(one.space, one.pid);
    }
  }
  const auto unused = std::ranges::count_if(bundle_.spaces, [&](const trace::Space& space) {
    const auto number = static_cast<trace::SpaceId>(&space - bundle_.spaces.data());
    const auto image = known_images_.lower_bound({number, std::numeric_limits<std::int64_t>::min()});
    return number != trace::kAnySpace && space.pid == kNoId &&
           (image == known_images_.end() || image->first != number);
  });
  if (unused != 0) {
    notes.push_back(std::to_string(unused) +
                    " address spaces belong to no process; perf.data has no place for their code.");
  }
}

// The first name of each; later ones have their times.
void Tasks::name_threads() {
  for (const trace::Sideband& record : bundle_.sideband) {
    auto& name = names_[{record.pid, record.tid}];
    if (!name.empty()) continue;
    if (record.kind == SidebandKind::THREAD) name = record.text;
    if (record.kind == SidebandKind::EXEC) name = comm_of(record.text);
  }
  for (const trace::Thread& thread : bundle_.threads) {
    auto& name = names_[{thread.pid, thread.tid}];
    if (name.empty()) name = thread.name;
  }
}

std::string Tasks::name_of(std::int64_t pid, std::int64_t tid) const {
  for (const std::int64_t one : {tid, pid}) {
    const auto found = names_.find({pid, one});
    if (found != names_.end() && !found->second.empty()) return found->second;
  }
  std::string unnamed(1, ':');  // as perf has it
  return unnamed += std::to_string(tid);
}

bool Tasks::any_cpu() const noexcept {
  return std::ranges::any_of(queues_, [](const Queue& queue) { return queue.cpu != kNoId; });
}

// ---- records

// perf finds a thread only if something has told of it before its trace begins.
void Tasks::write_births(Records& records) const {
  std::set<std::pair<std::int64_t, std::int64_t>> born;
  std::map<std::int64_t, std::uint64_t> begins;  // of processes
  for (const trace::Sideband& record : bundle_.sideband) {
    if (record.parent == kNoId) continue;
    if (record.kind == SidebandKind::PROCESS) begins.emplace(record.pid, record.tsc);
    if (record.kind == SidebandKind::PROCESS || record.kind == SidebandKind::THREAD)
      born.emplace(record.pid, record.kind == SidebandKind::PROCESS ? record.pid : record.tid);
  }
  const auto bear = [&](std::int64_t pid, std::int64_t tid) {
    if (pid == kNoId || tid == kNoId || !born.emplace(pid, tid).second) return;
    const auto begin = begins.find(pid);
    const std::uint64_t tsc = begin != begins.end() ? begin->second : trace::kTscMin;
    records.comm({pid, tid, kNoId, tsc}, name_of(pid, tid), false);
  };
  for (const ProcessImage& image : images_) bear(image.pid, image.pid);
  for (const Queue& queue : queues_) bear(queue.pid, queue.tid);
  for (const auto& [thread, name] : names_) bear(thread.first, thread.second);
  for (const trace::Stream& stream : bundle_.streams) {
    for (const trace::Switch& one : stream.switches) bear(one.pid, one.tid);
  }
}

void Tasks::write_sideband(Records& records) const {
  for (const trace::Sideband& record : bundle_.sideband) {
    const std::int64_t tid = record.tid != kNoId ? record.tid : record.pid;
    const Stamp who{record.pid, tid, kNoId, record.tsc};
    switch (record.kind) {
      case SidebandKind::PROCESS:
        if (record.parent != kNoId)
          records.fork({record.pid, record.pid, kNoId, record.tsc}, record.parent, record.parent);
        break;
      case SidebandKind::THREAD:
        if (record.parent != kNoId) records.fork(who, record.pid, record.pid);
        if (!record.text.empty()) records.comm(who, record.text, false);
        break;
      case SidebandKind::EXEC: {
        const std::string name = comm_of(record.text);
        records.comm({record.pid, record.pid, kNoId, record.tsc},
                     name.empty() ? name_of(record.pid, record.pid) : name, true);
        break;
      }
      case SidebandKind::EXIT:
        records.exit(who);
        break;
      case SidebandKind::MAP:  // by what the code says
      case SidebandKind::SIGNAL:
        break;
    }
  }
  std::set<std::pair<std::int64_t, std::int64_t>> told;
  for (const trace::Sideband& record : bundle_.sideband) {
    if (record.kind == SidebandKind::THREAD) told.emplace(record.pid, record.tid);
  }
  // Names that no record tells.
  for (const trace::Thread& thread : bundle_.threads) {
    if (!told.contains({thread.pid, thread.tid}) && thread.pid != kNoId && !thread.name.empty())
      records.comm({thread.pid, thread.tid, kNoId, trace::kTscMin}, thread.name, false);
  }
}

// Nobody's turn is that of the idle task.
void Tasks::write_switches(Records& records) const {
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    const Queue& queue = queues_[i];
    if (queue.cpu == kNoId) continue;
    const auto stamp = [&](std::int64_t pid, std::int64_t tid, std::uint64_t tsc) {
      if (tid == kNoId) return Stamp{0, 0, queue.cpu, tsc};
      return Stamp{pid != kNoId ? pid : tid, tid, queue.cpu, tsc};
    };
    Stamp now = stamp(queue.pid, queue.tid, trace::kTscMin);
    if (queue.tid != kNoId && bundle_.streams[i].switches.empty()) records.itrace_start(now);
    for (const trace::Switch& one : bundle_.streams[i].switches) {
      const Stamp next = stamp(one.pid, one.tid, one.tsc);
      now.tsc = one.tsc;
      if (one.tsc == trace::kTscMin) {
        records.itrace_start(next);
      } else {
        records.switch_to(now, next);
      }
      now = next;
    }
  }
}

void Tasks::write(Records& records) const {
  write_births(records);
  write_sideband(records);
  write_switches(records);
}

}  // namespace ptkit::formats::perf
