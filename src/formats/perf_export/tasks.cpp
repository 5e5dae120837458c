#include "formats/perf_export/tasks.h"

#include <algorithm>
#include <limits>

#include "trace/warning_codes.h"

namespace ptkit::formats::perf {

namespace {

using trace::kNoId;
using trace::SidebandKind;

constexpr std::int64_t kLastId = 4'194'304;  // Linux' greatest PID; perf looks up lower PIDs on this machine
constexpr std::size_t kCommBytes = 15;       // bytes of a thread's name (TASK_COMM_LEN)

// fork() and exec() give a process a new address space.
bool begins_image(const trace::Sideband& record) {
  return record.kind == SidebandKind::PROCESS || record.kind == SidebandKind::EXEC;
}

std::string comm_of(const std::string& path) {
  return path.substr(path.rfind('/') + 1).substr(0, kCommBytes);
}

bool has_thread(const trace::Switch& one) { return one.tid != kNoId; }

// Returns true if the stream has switches to other threads.
bool has_others(const trace::Stream& stream, std::int64_t tid) {
  return std::ranges::any_of(stream.switches,
                             [tid](const trace::Switch& one) { return has_thread(one) && one.tid != tid; });
}

// Returns true if a part of a stream with switches by offset has no known thread.
bool has_unknown_part(const trace::Stream& stream) {
  return stream.switches.empty() || stream.switches.front().offset != 0 ||
         !std::ranges::all_of(stream.switches, &has_thread);
}

// Returns the time of the first context switch to each space.
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

// Returns the begin of each space of a process. `times`: forks and execs of the process. `uses`: first use of
// each space, sorted. Each space, the last one first, takes the time nearest to its first use, since exec()
// is recorded a little late. The begin of the first space may be unknown (kTscMin).
std::vector<std::uint64_t> match_begins(std::vector<std::uint64_t> times,
                                        const std::vector<std::uint64_t>& uses) {
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

Tasks::Tasks(const trace::TraceBundle& bundle, std::vector<trace::Warning>& notes) : bundle_(bundle) {
  const auto note = [this](std::int64_t id) { last_id_ = std::max(last_id_, id); };
  for (const trace::Space& space : bundle.spaces) note(space.pid);
  for (const trace::Sideband& record : bundle.sideband) note(std::max(record.pid, record.tid));
  for (const trace::Stream& stream : bundle.streams) {
    note(std::max(stream.pid, stream.tid));
    for (const trace::Switch& one : stream.switches) note(std::max(one.pid, one.tid));
  }
  note(kLastId);
  find_queues(notes);
  find_images();
  note_unused_spaces(notes);
  name_threads();
}

std::int64_t Tasks::new_id() { return ++last_id_; }

// Returns the owner of a stream as far as the recording has it.
Queue Tasks::queue_of(const trace::Stream& stream) const {
  Queue queue{stream.cpu, stream.pid, stream.tid};
  // perf attributes BTS data to one thread, whatever the CPU.
  const bool is_trace = stream.kind == trace::StreamKind::PROCESSOR_TRACE;
  if (!is_trace) queue.cpu = kNoId;
  if (is_trace && queue.cpu == kNoId && queue.tid == kNoId) {
    const auto first = std::ranges::find_if(stream.switches, &has_thread);
    if (first != stream.switches.end() && !has_others(stream, first->tid))
      queue = {kNoId, first->pid, first->tid};
  }
  if (queue.pid == kNoId && stream.space < bundle_.spaces.size())
    queue.pid = bundle_.spaces[stream.space].pid;
  if (queue.tid == kNoId && stream.switches.empty()) queue.tid = queue.pid;
  return queue;
}

void Tasks::find_queues(std::vector<trace::Warning>& notes) {
  std::size_t made_up = 0;
  std::int64_t free_cpu = 0;
  for (const trace::Stream& stream : bundle_.streams) free_cpu = std::max(free_cpu, stream.cpu + 1);
  for (const trace::Stream& stream : bundle_.streams) {
    Queue queue = queue_of(stream);
    const bool is_trace = stream.kind == trace::StreamKind::PROCESSOR_TRACE;
    if (is_trace && queue.cpu == kNoId && has_others(stream, queue.tid)) {
      queue.cpu = free_cpu++;
      notes.push_back(
          warn(trace::WarningCode::EXPORT_STREAM_WITHOUT_CPU, queue.cpu).at("Stream '" + stream.name + "'"));
    }
    if (queue.tid == kNoId &&
        (is_trace ? stream.switches.empty() || queue.cpu == kNoId : has_unknown_part(stream))) {
      queue.tid = new_id();
      ++made_up;
    }
    if (queue.pid == kNoId) queue.pid = queue.tid;
    queues_.push_back(queue);
  }
  if (made_up != 0) {
    notes.push_back(warn(trace::WarningCode::EXPORT_STREAM_WITHOUT_TID, made_up));
  }
}

// A process keeps its space over exec() in a recording by perf, where only the code of the space ends. Such a
// space has an image for each program.
void Tasks::add_images(trace::SpaceId space, std::int64_t pid, std::uint64_t begin,
                       const BeginRecords& begins) {
  if (!known_images_.emplace(space, pid).second) return;
  std::set<std::uint64_t> ends;
  if (const auto found = code_ends_.find(space); found != code_ends_.end()) {
    for (const std::uint64_t exec : begins.execs)
      if (found->second.contains(exec)) ends.insert(exec);
  }
  if (!ends.empty() && begin >= *ends.begin()) {
    begin = trace::kTscMin;
    for (const std::uint64_t fork : begins.forks)
      if (fork < *ends.begin()) begin = std::max(begin, fork);
  }
  for (const std::uint64_t end : ends) {
    images_.push_back({space, pid, begin, end});
    begin = end;
  }
  images_.push_back({space, pid, begin});
}

void Tasks::add_space(trace::SpaceId space, std::int64_t pid) {
  if (space >= bundle_.spaces.size()) space = trace::kAnySpace;
  const std::int64_t own = bundle_.spaces[space].pid;
  add_images(space, own != kNoId ? own : pid, trace::kTscMin, {});
}

// Processes with known first uses of all their spaces are matched by these, other processes by record order
// alone.
void Tasks::find_images() {
  std::map<std::int64_t, BeginRecords> begins;
  for (const trace::Sideband& record : bundle_.sideband) {
    if (begins_image(record)) begins[record.pid].all.push_back(record.tsc);
    if (record.kind == SidebandKind::PROCESS) begins[record.pid].forks.push_back(record.tsc);
    if (record.kind == SidebandKind::EXEC) begins[record.pid].execs.push_back(record.tsc);
  }
  for (const trace::CodeRegion& region : bundle_.code) code_ends_[region.space].insert(region.tsc_to);
  std::map<std::int64_t, std::vector<trace::SpaceId>> spaces_of;
  for (std::size_t i = 0; i < bundle_.spaces.size(); ++i) {
    if (bundle_.spaces[i].pid != kNoId)
      spaces_of[bundle_.spaces[i].pid].push_back(static_cast<trace::SpaceId>(i));
  }
  const std::map<trace::SpaceId, std::uint64_t> uses = first_uses(bundle_);
  for (const auto& [pid, spaces] : spaces_of) {
    if (std::ranges::all_of(spaces, [&](trace::SpaceId space) { return uses.contains(space); })) {
      add_images_by_first_use(pid, spaces, uses, begins[pid]);
    } else {
      add_images_by_begin_records(pid, spaces, begins[pid]);
    }
  }
  add_images_of_streams();
}

// A space begins with the fork or exec nearest to its first use. The first space begins at least with the
// fork.
void Tasks::add_images_by_first_use(std::int64_t pid, std::vector<trace::SpaceId> spaces,
                                    const std::map<trace::SpaceId, std::uint64_t>& uses,
                                    const BeginRecords& begins) {
  std::ranges::stable_sort(spaces, {}, [&](trace::SpaceId space) { return uses.at(space); });
  std::vector<std::uint64_t> first;
  first.reserve(spaces.size());
  for (const trace::SpaceId space : spaces) first.push_back(uses.at(space));
  std::vector<std::uint64_t> found = match_begins(begins.all, first);
  if (found[0] == trace::kTscMin && !begins.forks.empty()) found[0] = begins.forks.front();
  for (std::size_t i = 0; i < spaces.size(); ++i) add_images(spaces[i], pid, found[i], begins);
}

// The spaces begin with the forks and execs if each space has one, else with the forks alone. With fewer
// records than spaces, the begins of the first spaces are unknown.
void Tasks::add_images_by_begin_records(std::int64_t pid, const std::vector<trace::SpaceId>& spaces,
                                        const BeginRecords& begins) {
  const auto& times = begins.all.size() == spaces.size() ? begins.all : begins.forks;
  for (std::size_t i = 0; i < spaces.size(); ++i) {
    const std::size_t at = i + times.size() - spaces.size();  // wraps for spaces without a record
    add_images(spaces[i], pid, at < times.size() ? times[at] : trace::kTscMin, begins);
  }
}

// Adds spaces that streams and context switches use.
void Tasks::add_images_of_streams() {
  for (std::size_t i = 0; i < queues_.size(); ++i) {
    const trace::Stream& stream = bundle_.streams[i];
    if (queues_[i].pid != kNoId) add_space(stream.space, queues_[i].pid);
    for (const trace::Switch& one : stream.switches) {
      if (one.pid != kNoId) add_space(one.space, one.pid);
    }
  }
}

void Tasks::note_unused_spaces(std::vector<trace::Warning>& notes) const {
  const auto unused = std::ranges::count_if(bundle_.spaces, [&](const trace::Space& space) {
    const auto number = static_cast<trace::SpaceId>(&space - bundle_.spaces.data());
    const auto image = known_images_.lower_bound({number, std::numeric_limits<std::int64_t>::min()});
    return number != trace::kAnySpace && space.pid == kNoId &&
           (image == known_images_.end() || image->first != number);
  });
  if (unused != 0) {
    notes.push_back(warn(trace::WarningCode::EXPORT_SPACES_UNUSED, unused));
  }
}

// Takes the first name of each thread. Later names have COMM records with times.
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
  std::string unnamed(1, ':');  // perf's name of a thread without a name
  return unnamed += std::to_string(tid);
}

bool Tasks::any_cpu() const noexcept {
  return std::ranges::any_of(queues_, [](const Queue& queue) { return queue.cpu != kNoId; });
}

// ---- records

// perf finds a thread only if a record names it before its trace begins.
void Tasks::write_new_tasks(Records& records) const {
  std::set<std::pair<std::int64_t, std::int64_t>> announced;
  std::map<std::int64_t, std::uint64_t> begins;  // by process
  for (const trace::Sideband& record : bundle_.sideband) {
    if (record.parent == kNoId) continue;
    if (record.kind == SidebandKind::PROCESS) begins.emplace(record.pid, record.tsc);
    if (record.kind == SidebandKind::PROCESS || record.kind == SidebandKind::THREAD)
      announced.emplace(record.pid, record.kind == SidebandKind::PROCESS ? record.pid : record.tid);
  }
  const auto announce = [&](std::int64_t pid, std::int64_t tid) {
    if (pid == kNoId || tid == kNoId || !announced.emplace(pid, tid).second) return;
    const auto begin = begins.find(pid);
    const std::uint64_t tsc = begin != begins.end() ? begin->second : trace::kTscMin;
    records.comm({pid, tid, kNoId, tsc}, name_of(pid, tid), false);
  };
  for (const ProcessImage& image : images_) announce(image.pid, image.pid);
  for (const Queue& queue : queues_) announce(queue.pid, queue.tid);
  for (const auto& [thread, name] : names_) announce(thread.first, thread.second);
  for (const trace::Stream& stream : bundle_.streams) {
    for (const trace::Switch& one : stream.switches) announce(one.pid, one.tid);
  }
}

void Tasks::write_sideband(Records& records) const {
  for (const trace::Sideband& record : bundle_.sideband) {
    const std::int64_t tid = record.tid != kNoId ? record.tid : record.pid;
    const Stamp stamp{record.pid, tid, kNoId, record.tsc};
    switch (record.kind) {
      case SidebandKind::PROCESS:
        if (record.parent != kNoId)
          records.fork({record.pid, record.pid, kNoId, record.tsc}, record.parent, record.parent);
        break;
      case SidebandKind::THREAD:
        if (record.parent != kNoId) records.fork(stamp, record.pid, record.pid);
        if (!record.text.empty()) records.comm(stamp, record.text, false);
        break;
      case SidebandKind::EXEC: {
        const std::string name = comm_of(record.text);
        records.comm({record.pid, record.pid, kNoId, record.tsc},
                     name.empty() ? name_of(record.pid, record.pid) : name, true);
        break;
      }
      case SidebandKind::EXIT:
        records.exit(stamp);
        break;
      case SidebandKind::MAP:  // Code writes MMAP2 records
      case SidebandKind::SIGNAL:
        break;
    }
  }
  std::set<std::pair<std::int64_t, std::int64_t>> named;
  for (const trace::Sideband& record : bundle_.sideband) {
    if (record.kind == SidebandKind::THREAD) named.emplace(record.pid, record.tid);
  }
  // Names of threads without a THREAD record.
  for (const trace::Thread& thread : bundle_.threads) {
    if (!named.contains({thread.pid, thread.tid}) && thread.pid != kNoId && !thread.name.empty())
      records.comm({thread.pid, thread.tid, kNoId, trace::kTscMin}, thread.name, false);
  }
}

// A switch without a thread is written as one to the idle task.
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
        records.switch_to(now, next, one.departure);
      }
      now = next;
    }
  }
}

void Tasks::write(Records& records) const {
  write_new_tasks(records);
  write_sideband(records);
  write_switches(records);
}

}  // namespace ptkit::formats::perf
