// Parses sideband records of the kernel to events of processes and to running threads.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/perf_event/record.h"
#include "formats/perf_event/sample.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// Not a record of the kernel: a function that a JIT compiler wrote to a jitdump.
inline constexpr std::uint32_t JIT_LOAD = 0x10000;

// MMAP, MMAP2, COMM, FORK, EXIT, or JIT_LOAD.
struct Event {
  // Nanoseconds of perf's clock, and TSC after finish(). 0: valid from the beginning.
  std::uint64_t tsc = 0;
  std::uint32_t type = 0;
  bool exec = false;  // COMM: exec(); FORK: the child has no mappings of its parent
  std::int64_t pid = trace::kNoId;
  std::int64_t tid = trace::kNoId;
  std::int64_t parent_pid = trace::kNoId;
  std::int64_t parent_tid = trace::kNoId;
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::uint64_t file_offset = 0;
  std::string text;  // path, or name of a thread
  std::string build_id;
  std::uint32_t device_major = 0;  // MMAP2 without a build-id: of the file, with its inode; 0: not recorded
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;
  std::int32_t file = -1;    // JIT_LOAD: in TraceBundle::files
  trace::TraceBuffer bytes;  // JIT_LOAD
};

// A parsed MMAP or MMAP2 record.
struct Mapped {
  Event event;           // without a time
  bool is_code = false;  // by the record alone
};
// Returns nothing if the record is too short. Bytes after its fields (a trailer) are ignored.
[[nodiscard]] std::optional<Mapped> read_mmap(const Record& record, Fields fields);

// A thread is switched in (or out) on a CPU.
struct Running {
  std::uint64_t tsc = 0;  // as Event's
  std::int64_t cpu = trace::kNoId;
  std::int64_t pid = trace::kNoId;
  std::int64_t tid = trace::kNoId;
  bool out = false;
  trace::Departure departure = trace::Departure::UNKNOWN;  // with `out`
};

// How the thread that is switched out leaves its processor, by the `misc` field of a SWITCH record.
[[nodiscard]] trace::Departure departure_of(std::uint16_t misc) noexcept;

// A stream belongs to a thread from an offset on.
struct Owner {
  std::uint64_t tsc = 0;  // TSC of the record
  std::int64_t pid = trace::kNoId;
  std::int64_t tid = trace::kNoId;
  std::uint64_t offset = 0;
  trace::Departure departure = trace::Departure::UNKNOWN;  // of the thread before
};

// Converts perf's nanoseconds to TSC. Without a known clock: 0.
[[nodiscard]] std::uint64_t tsc_of(const trace::Clock& clock, std::uint64_t ns);

class Sideband {
 public:
  // `body`: without the trailer. Returns false if the record is too short.
  [[nodiscard]] bool take(const Record& record, base::Bytes body, const Trailer& trailer);
  // A sample of sched:sched_switch, which recordings without SWITCH records have.
  [[nodiscard]] bool take_switch(const SchedSwitch& event, const Sample& sample);
  // Converts times to TSC and sorts by time. AUXTRACE_INFO, which has the clock, may come after records that
  // need it.
  void finish(const trace::Clock& clock);
  // Updates the last time of a CPU, by a record of any kind, in file order.
  void update_time(const Trailer& trailer);
  // Records are missing from here on (in file order): running threads are unknown until a record names them.
  void forget_running();
  void add(std::vector<Event> events);  // after finish(), with times as TSC
  // The process of a thread, or kNoId.
  [[nodiscard]] std::int64_t pid_of(std::int64_t tid) const;

  [[nodiscard]] const std::vector<Event>& events() const noexcept { return events_; }
  [[nodiscard]] const std::vector<Running>& running() const noexcept { return running_; }
  [[nodiscard]] std::uint64_t lost() const noexcept { return lost_; }  // by LOST records

 private:
  [[nodiscard]] bool take_mmap(const Record& record, Fields fields, const Trailer& trailer);
  [[nodiscard]] bool take_comm(const Record& record, Fields fields, const Trailer& trailer);
  [[nodiscard]] bool take_fork(const Record& record, Fields fields, const Trailer& trailer);

  std::vector<Event> events_;
  std::vector<Running> running_;
  std::unordered_map<std::int64_t, std::int64_t> pids_;  // by thread; a reused TID has its last process
  std::unordered_map<std::int64_t, std::uint64_t> last_times_;  // by CPU
  std::uint64_t lost_ = 0;
};

}  // namespace ptkit::formats::perf
