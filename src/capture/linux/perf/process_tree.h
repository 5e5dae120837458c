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
  void begin(std::int32_t pid, bool children) {
    pid_ = pid;
    children_ = children;
    members_ = {pid};
  }
  // FORK and EXEC records count. The FORK record of a process comes before its other records.
  void take(const SystemRecord& record) {
    if (record.kind == SystemRecord::Kind::EXEC && has(record.pid))
      executed_.try_emplace(record.pid, record.tsc);
    if (record.kind == SystemRecord::Kind::FORK && record.pid != record.parent_pid) add_child(record);
  }

  [[nodiscard]] bool has(std::int32_t pid) const { return pid_ == 0 || members_.count(pid) != 0; }
  // Whether the process is in the tree and had not called exec() before `tsc`: user addresses are valid only
  // in the first program.
  [[nodiscard]] bool has_program(std::int32_t pid, std::uint64_t tsc) const {
    const auto executed = executed_.find(pid);
    return has(pid) && (executed == executed_.end() || tsc < executed->second);
  }

 private:
  // PIDs are reused: what is known of an earlier process with this PID is erased.
  void add_child(const SystemRecord& fork) {
    members_.erase(fork.pid);
    executed_.erase(fork.pid);
    if (!children_ && pid_ != 0) return;
    if (pid_ != 0 && has(fork.parent_pid)) members_.insert(fork.pid);
    if (!has_program(fork.parent_pid, fork.tsc) && has(fork.pid)) executed_.emplace(fork.pid, fork.tsc);
  }

  std::int32_t pid_ = 0;
  bool children_ = false;
  std::set<std::int32_t> members_;                  // if `pid_` is not 0
  std::map<std::int32_t, std::uint64_t> executed_;  // by PID: TSC of its first exec()
};

}  // namespace ptkit::capture
