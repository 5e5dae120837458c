// Code that programs made while they were recorded, from the dumps that they wrote (jit-PID.dump).
#pragma once

#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "capture/bundle_output.h"

namespace ptkit::capture {

class JitDumps {
 public:
  // A process has mapped a file: if that is a dump, it is read later, when it has all that the process made.
  [[nodiscard]] bool add(std::int64_t pid, trace::SpaceId space, std::uint64_t tsc, const Mapping& file);
  // A file that a process has mapped, where code that it made may have been.
  struct Mapped {
    std::uint64_t address = 0;
    std::uint64_t bytes = 0;
    std::uint64_t tsc = 0;
  };
  using MappedBy = std::function<std::vector<Mapped>(std::int64_t pid, trace::SpaceId space)>;
  // Functions go to the bundle, from their times on until a file is mapped over them.
  void save(BundleOutput& output, const MappedBy& mapped_by);
  // Whether a dump of the space is still to be read.
  [[nodiscard]] bool waits_for(trace::SpaceId space) const {
    const auto at = known_.lower_bound({space, {}});
    return at != known_.end() && at->first == space;
  }
  // Whether the made code of a space is in the bundle.
  [[nodiscard]] bool has(trace::SpaceId space) const { return read_.count(space) != 0; }
  [[nodiscard]] const std::vector<std::string>& warnings() const noexcept { return warnings_; }

 private:
  struct Dump {
    std::int64_t pid = trace::kNoId;
    trace::SpaceId space = trace::kAnySpace;
    std::uint64_t tsc = 0;  // when it was mapped
    Mapping file;
  };
  std::vector<Dump> dumps_;
  std::set<std::pair<trace::SpaceId, std::string>> known_;
  std::set<trace::SpaceId> read_;
  std::vector<std::string> warnings_;
};

}  // namespace ptkit::capture
