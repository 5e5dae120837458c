#include "capture/linux/perf/process_tree.h"

namespace ptkit::capture {

void ProcessTree::begin(std::int32_t pid, bool children) {
  pid_ = pid;
  children_ = children;
  members_ = {pid};
}

void ProcessTree::take(const SystemRecord& record) {
  if (record.kind == SystemRecord::Kind::EXEC && has(record.pid))
    executed_.try_emplace(record.pid, record.tsc);
  if (record.kind == SystemRecord::Kind::FORK && record.pid != record.parent_pid) add_child(record);
}

// PIDs are reused: what is known of an earlier process with this PID is erased.
void ProcessTree::add_child(const SystemRecord& fork) {
  members_.erase(fork.pid);
  executed_.erase(fork.pid);
  if (!children_ && pid_ != 0) return;
  if (pid_ != 0 && has(fork.parent_pid)) members_.insert(fork.pid);
  if (!has_program(fork.parent_pid, fork.tsc) && has(fork.pid)) executed_.emplace(fork.pid, fork.tsc);
}

bool ProcessTree::has_program(std::int32_t pid, std::uint64_t tsc) const {
  const auto executed = executed_.find(pid);
  return has(pid) && (executed == executed_.end() || tsc < executed->second);
}

}  // namespace ptkit::capture
