// Writes processes and threads of a recording for perf: each stream belongs to a CPU or a thread, and each
// address space to a process from some time on. For .cpp files of this folder only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/perf_export/records.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// An address space of a process, until the process gets another one, or exec() ends its code.
struct ProcessImage {
  trace::SpaceId space = trace::kAnySpace;
  std::int64_t pid = trace::kNoId;
  std::uint64_t begin = trace::kTscMin;
  std::uint64_t end = trace::kTscMax;  // of the code; kTscMax: it is not known to end
};

// Greatest PID, TID and CPU that can be written: perf.data has 32 bits, and made-up TIDs need some numbers
// above.
inline constexpr std::int64_t kMostId = (std::int64_t{1} << 30U) - 1;

// Owner of a stream: a CPU (`cpu`), or else a thread.
struct Queue {
  std::int64_t cpu = trace::kNoId;
  std::int64_t pid = trace::kNoId;
  std::int64_t tid = trace::kNoId;
};

class Tasks {
 public:
  Tasks(const trace::TraceBundle& bundle, std::vector<trace::Warning>& notes);

  [[nodiscard]] const std::vector<Queue>& queues() const noexcept { return queues_; }  // one per stream
  [[nodiscard]] const std::vector<ProcessImage>& images() const noexcept { return images_; }
  [[nodiscard]] bool any_cpu() const noexcept;  // a stream belongs to a CPU
  void write(Records& records) const;

 private:
  void find_queues(std::vector<trace::Warning>& notes);
  [[nodiscard]] Queue queue_of(const trace::Stream& stream) const;
  // Times at which a process got an address space, in the order of records.
  struct BeginRecords {
    std::vector<std::uint64_t> all;  // forks and execs
    std::vector<std::uint64_t> forks;
    std::vector<std::uint64_t> execs;
  };
  using CodeEnds = std::map<trace::SpaceId, std::set<std::uint64_t>>;
  void find_images();
  void add_images_by_first_use(std::int64_t pid, std::vector<trace::SpaceId> spaces,
                               const std::map<trace::SpaceId, std::uint64_t>& uses,
                               const BeginRecords& begins);
  void add_images_by_begin_records(std::int64_t pid, const std::vector<trace::SpaceId>& spaces,
                                   const BeginRecords& begins);
  void add_images_of_streams();
  void note_unused_spaces(std::vector<trace::Warning>& notes) const;
  void add_images(trace::SpaceId space, std::int64_t pid, std::uint64_t begin, const BeginRecords& begins);
  void add_space(trace::SpaceId space, std::int64_t pid);
  void name_threads();
  void write_new_tasks(Records& records) const;
  void write_sideband(Records& records) const;
  void write_switches(Records& records) const;
  [[nodiscard]] std::string name_of(std::int64_t pid, std::int64_t tid) const;
  [[nodiscard]] std::int64_t new_id();

  const trace::TraceBundle& bundle_;
  std::vector<Queue> queues_;
  std::vector<ProcessImage> images_;
  std::set<std::pair<trace::SpaceId, std::int64_t>> known_images_;
  CodeEnds code_ends_;  // times at which code of each space ends
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> names_;  // thread names by pid and tid
  std::int64_t last_id_ = 0;
};

}  // namespace ptkit::formats::perf
