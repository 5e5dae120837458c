// The process tree in which trigger events count: events of whole CPUs fire in all processes.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "capture/linux/sideband/system_record.h"

namespace ptkit::capture {

class ProcessTree {
 public:
  // The process `pid` and, with `children`, its descendants; 0: all processes.
  void begin(std::int32_t pid, bool children);
  // FORK and EXEC records count. The FORK record of a process comes before its other records.
  void take(const SystemRecord& record);

  [[nodiscard]] bool has(std::int32_t pid) const { return pid_ == 0 || members_.count(pid) != 0; }
  // Whether the process is in the tree and had not called exec() before `tsc`: user addresses are valid only
  // in the first program.
  [[nodiscard]] bool has_program(std::int32_t pid, std::uint64_t tsc) const;

 private:
  void add_child(const SystemRecord& fork);

  std::int32_t pid_ = 0;
  bool children_ = false;
  std::set<std::int32_t> members_;                  // if `pid_` is not 0
  std::map<std::int32_t, std::uint64_t> executed_;  // by PID: TSC of its first exec()
};

}  // namespace ptkit::capture
