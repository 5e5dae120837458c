// JIT code of the recorded programs, from the dumps that the programs wrote (jit-PID.dump).
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "capture/linux/output/bundle_output.h"

namespace ptkit::capture {

class JitDumps {
 public:
  // A process mapped a file. A dump is read by save(), when it has all JIT code of the process. Returns false
  // if the file is no dump.
  [[nodiscard]] bool add(std::int64_t pid, trace::SpaceId space, std::uint64_t tsc, const Mapping& file);
  // A file mapping of a process, which may replace JIT code.
  struct Mapped {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint64_t tsc = 0;
  };
  using MappedBy = std::function<std::vector<Mapped>(std::int64_t pid, trace::SpaceId space)>;
  // Writes all functions to the bundle. Each is valid from its load time until a file is mapped over it.
  void save(BundleOutput& output, const MappedBy& mapped_by);
  // Whether the space has a dump that is not read yet.
  [[nodiscard]] bool waits_for(trace::SpaceId space) const {
    const auto at = known_.lower_bound({space, {}});
    return at != known_.end() && at->first == space;
  }
  // Whether JIT code of the space is in the bundle.
  [[nodiscard]] bool has(trace::SpaceId space) const { return read_.count(space) != 0; }
  [[nodiscard]] const std::vector<trace::Warning>& warnings() const noexcept { return warnings_; }

 private:
  struct Dump {
    std::int64_t pid = trace::kNoId;
    trace::SpaceId space = trace::kAnySpace;
    std::uint64_t tsc = 0;  // of the mapping
    Mapping file;
  };
  std::vector<Dump> dumps_;
  std::set<std::pair<trace::SpaceId, std::string>> known_;
  std::set<trace::SpaceId> read_;
  std::vector<trace::Warning> warnings_;
};

}  // namespace ptkit::capture
