// Processes of a recording by perf, and what each had mapped when: events in, address spaces and code out.
// For .cpp files of this folder only.
#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "formats/perf_binaries.h"
#include "formats/perf_sideband.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

class Processes {
 public:
  // `is_here`: they ran on this machine. `file_bytes`: of the recording, which limit what it may ask for.
  Processes(trace::TraceBundle& bundle, Binaries& binaries, bool is_here, std::uint64_t file_bytes);

  void take(const Event& event);  // in the order of time
  // Of a process as it is now; made if nothing is known of it.
  [[nodiscard]] trace::SpaceId space_of(std::int64_t pid);
  void finish();  // behind the last one

 private:
  void map(const Event& event);
  void load(const Event& event);
  void fork(const Event& event);
  void inherit(trace::SpaceId parent, trace::SpaceId child, std::uint64_t tsc);
  void drop_covered(trace::SpaceId space, std::uint64_t tsc);
  void exec(const Event& event);
  void note(trace::SidebandKind kind, const Event& event);
  void look_for_doubt(const trace::CodeRegion& region);

  struct Untimed {
    std::uint64_t end = 0;
    std::int32_t file = -1;
    std::uint64_t begin_in_file = 0;  // where the file's first byte would lie
  };
  trace::TraceBundle& bundle_;
  Binaries& binaries_;
  bool is_here_;
  std::set<trace::SpaceId> with_dump_;                         // whose made code is known from a dump
  std::map<std::int64_t, trace::SpaceId> spaces_;              // by pid
  std::map<trace::SpaceId, std::vector<std::size_t>> mapped_;  // regions that a space has now
  std::size_t may_inherit_ = 0;                                // regions that fork() may still copy
  bool inherits_all_ = true;
  std::map<std::pair<trace::SpaceId, std::uint64_t>, Untimed>
      untimed_;                                                         // mappings without a time, by address
  bool doubt_ = false;                                                  // two of them lie one over the other
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> names_;  // of threads, by pid and tid
};

}  // namespace ptkit::formats::perf
