// Processes and threads of a recording as perf has them: each stream belongs to a processor or a thread, and
// each address space to a process from some time on. For .cpp files of this folder only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/perf_write_records.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// An address space as the one that a process has, until it gets another one.
struct ProcessImage {
  trace::SpaceId space = trace::kAnySpace;
  std::int64_t pid = trace::kNoId;
  std::uint64_t begin = trace::kTscMin;
};

// Numbers of processes, threads and processors that perf.data has room for, and some more to make up.
inline constexpr std::int64_t kMostId = (std::int64_t{1} << 30U) - 1;

// Whose a stream is: a processor's (`cpu`), or else a thread's.
struct Queue {
  std::int64_t cpu = trace::kNoId;
  std::int64_t pid = trace::kNoId;
  std::int64_t tid = trace::kNoId;
};

class Tasks {
 public:
  Tasks(const trace::TraceBundle& bundle, std::vector<std::string>& notes);

  [[nodiscard]] const std::vector<Queue>& queues() const noexcept { return queues_; }  // one per stream
  [[nodiscard]] const std::vector<ProcessImage>& images() const noexcept { return images_; }
  [[nodiscard]] bool any_cpu() const noexcept;  // has a stream
  void write(Records& records) const;

 private:
  void find_queues(std::vector<std::string>& notes);
  [[nodiscard]] Queue queue_of(const trace::Stream& stream) const;
  void find_images(std::vector<std::string>& notes);
  void add_image(trace::SpaceId space, std::int64_t pid, std::uint64_t begin);
  void add_space(trace::SpaceId space, std::int64_t pid);
  void name_threads();
  void write_births(Records& records) const;
  void write_sideband(Records& records) const;
  void write_switches(Records& records) const;
  [[nodiscard]] std::string name_of(std::int64_t pid, std::int64_t tid) const;
  [[nodiscard]] std::int64_t new_id();

  const trace::TraceBundle& bundle_;
  std::vector<Queue> queues_;
  std::vector<ProcessImage> images_;
  std::set<std::pair<trace::SpaceId, std::int64_t>> known_images_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> names_;  // of threads, by pid and tid
  std::int64_t last_id_ = 0;
};

}  // namespace ptkit::formats::perf
