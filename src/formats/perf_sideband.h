// What the kernel recorded besides the trace: records in, events about processes and about who ran out.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/perf_record.h"
#include "formats/perf_tracepoint.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// No record, but what a program told by itself: a function that it made.
inline constexpr std::uint32_t JIT_LOAD = 0x10000;

// A record about processes: MMAP, MMAP2, COMM, FORK, EXIT; or JIT_LOAD.
struct Event {
  // Nanoseconds of perf's clock, until the whole file has been read; 0: from the beginning on.
  std::uint64_t tsc = 0;
  std::uint32_t type = 0;
  bool exec = false;  // COMM; FORK: the child has none of its parent's mappings
  std::int64_t pid = trace::kNoId;
  std::int64_t tid = trace::kNoId;
  std::int64_t parent_pid = trace::kNoId;
  std::int64_t parent_tid = trace::kNoId;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t file_offset = 0;
  std::string text;  // path, or name of a thread
  std::string build_id;
  std::int32_t file = -1;    // JIT_LOAD: in TraceBundle::files
  trace::TraceBuffer bytes;  // JIT_LOAD
};

// What an MMAP or MMAP2 record says by itself.
struct Mapped {
  Event event;           // without a time
  bool is_code = false;  // as far as the record tells
};
// Nothing: the record is too short for what it is. There may be a trailer behind its fields.
[[nodiscard]] std::optional<Mapped> read_mmap(const Record& record, Fields fields);

// From then on this thread ran on a processor, or this one no longer did.
struct Running {
  std::uint64_t tsc = 0;  // as Event's
  std::int64_t cpu = trace::kNoId;
  std::int64_t pid = trace::kNoId;
  std::int64_t tid = trace::kNoId;
  bool out = false;
};

// From a place of a stream on it is this thread's.
struct Owner {
  std::uint64_t tsc = 0;  // when that was known
  std::int64_t pid = trace::kNoId;
  std::int64_t tid = trace::kNoId;
  std::uint64_t offset = 0;
};

// The time of nanoseconds of perf's clock; the beginning if the clock is not known.
[[nodiscard]] std::uint64_t tsc_of(const trace::Clock& clock, std::uint64_t ns);

class Sideband {
 public:
  // `body`: without the trailer. False: the record is too short for what it is.
  [[nodiscard]] bool take(const Record& record, base::Bytes body, const Trailer& who);
  // A sample of sched:sched_switch, as recordings without SWITCH records have them.
  [[nodiscard]] bool take_switch(const SchedSwitch& event, const Sample& sample);
  // When the clock is known (AUXTRACE_INFO may come behind records that need it): times become TSC, and
  // everything is put into their order.
  void finish(const trace::Clock& clock);
  // In the file's order: a record of whatever kind; and that from there on some are missing, so that nobody
  // knows who runs until a record says so again.
  void note_time(const Trailer& who);
  void lose_track();
  void add(std::vector<Event> events);  // behind finish(), with times as TSC
  // The process of a thread, or kNoId.
  [[nodiscard]] std::int64_t pid_of(std::int64_t tid) const;

  [[nodiscard]] const std::vector<Event>& events() const noexcept { return events_; }
  [[nodiscard]] const std::vector<Running>& running() const noexcept { return running_; }
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }  // records that perf had no room for

 private:
  [[nodiscard]] bool take_mmap(const Record& record, Fields fields, const Trailer& who);
  [[nodiscard]] bool take_comm(const Record& record, Fields fields, const Trailer& who);
  [[nodiscard]] bool take_fork(const Record& record, Fields fields, const Trailer& who);

  std::vector<Event> events_;
  std::vector<Running> running_;
  std::unordered_map<std::int64_t, std::int64_t> pids_;  // by thread; of numbers used again, the last one's
  std::unordered_map<std::int64_t, std::uint64_t> last_times_;  // by CPU
  std::uint64_t lost_ = 0;
};

}  // namespace ptkit::formats::perf
