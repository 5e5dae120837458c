// Names of JIT code, from files that programs write while they run: perf-PID.map and jit-PID.dump. Recorders
// look at these files now and then: so it is known by when a line was there.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "capture/linux/output/bundle_output.h"
#include "capture/linux/sideband/jit_timeline.h"
#include "trace/bundle.h"

namespace ptkit::capture {

// Thread-safe.
class JitNames {
 public:
  // Which files a process may have. Jitdumps are looked for in /tmp and in the process's working directory.
  enum class Kinds : std::uint8_t { MAPS, MAPS_AND_DUMPS };
  explicit JitNames(Kinds kinds) : kinds_(kinds) {}

  struct Process {
    pid_t pid = 0;
    trace::SpaceId space = trace::kAnySpace;
    trace::SpaceId parent = trace::kAnySpace;  // the space that was forked; kAnySpace: a new image
    std::uint64_t tsc = 0;
    bool begins = true;  // what its files have at that time is not its own
  };
  void begin(const Process& process);
  // An image ends: what is written from now on is not its own.
  void end(trace::SpaceId space, std::uint64_t tsc);
  // Looks at the files of all processes. `exact`: what is new in a file was written right now.
  void look(std::uint64_t tsc, bool exact = false);
  void executed(trace::SpaceId space, std::vector<JitExecution> executions);

  // Names from these files for the bundle. For the end of a recording.
  [[nodiscard]] NameList read(CodeReader& reader, std::uint64_t tsc);
  [[nodiscard]] std::vector<trace::Warning> warnings() const;

 private:
  // A file that a program appends to.
  struct Source {
    std::string path;
    bool is_dump = false;
    Fd file{};                  // by O_PATH; none: not there yet
    std::uint64_t skipped = 0;  // bytes before the process began
    struct Mark {
      std::uint64_t after = 0;  // bytes before `size` may have been written from then on
      std::uint64_t size = 0;
    };
    std::vector<Mark> marks{};
  };
  struct Image {
    Process process;
    uid_t user = 0;
    bool ended = false;
    std::uint64_t last_look = 0;
    std::vector<Source> sources{};
  };

  void look(Image& image, std::uint64_t tsc, bool exact);
  [[nodiscard]] bool open(const Image& image, Source& source);
  void add_source(Image& image, const std::string& path, bool is_dump);
  void read(CodeReader& reader, Source& source, JitTimeline& timeline, NameList& found);
  [[nodiscard]] std::vector<JitExecution> take_executions(trace::SpaceId space);

  Kinds kinds_;
  mutable std::mutex mutex_;  // guards what follows
  std::vector<Image> images_;
  std::map<trace::SpaceId, std::vector<JitExecution>> executions_;
  std::size_t open_files_ = 0;
  std::size_t names_ = 0;
  bool limited_ = false;
  std::set<std::string> refused_;
  std::vector<trace::Warning> warnings_;
};

}  // namespace ptkit::capture
