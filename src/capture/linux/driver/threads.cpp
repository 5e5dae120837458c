// Sessions of single threads. A thread that begins while recording gets its session when its FORK record is
// read: what it executed before that is missing.
#include <cerrno>
#include <utility>

#include "capture/device/config.h"
#include "capture/linux/driver/backend.h"
#include "capture/linux/process/process.h"
#include "capture/linux/process/tsc_clock.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

using trace::WarningCode;

base::Result<bool> DriverBackend::open_thread(int tid) {
  auto port = new_port();
  if (!port.ok()) return port.failure();
  threads_[tid] = read_tsc();
  ptkit_config config = config_;
  config.target = PTKIT_TARGET_TASK;
  config.task = tid;
  const int error = port.value()->request(PTKIT_CONFIGURE, &config);
  if (error == ESRCH) return false;
  if (error != 0) return config_error(error, config);
  if (auto failure = add_buffers(std::move(port.value()), config)) return *failure;
  return true;
}

DriverBackend::Problem DriverBackend::open_threads() {
  for (const int tid : threads_of(pid_)) {
    const auto opened = open_thread(tid);
    if (!opened.ok()) return opened.failure();
  }
  return ports_.empty() ? start_error(ESRCH) : Problem();
}

void DriverBackend::find_threads() {
  for (const int tid : threads_of(pid_)) {
    if (threads_.count(tid) == 0) begun_.insert(tid);
  }
}

// TIDs are reused.
void DriverBackend::note_threads(const std::vector<SystemRecord>& records) {
  for (const SystemRecord& record : records) {
    records_lost_ = records_lost_ || record.kind == SystemRecord::Kind::LOST;
    if (record.kind != SystemRecord::Kind::FORK || record.pid != pid_) continue;
    const auto known = threads_.find(record.tid);
    if (known == threads_.end() || known->second < record.tsc) begun_.insert(record.tid);
  }
}

void DriverBackend::trace_new_threads() {
  if (paused_ || !per_thread_) return;
  if (std::exchange(records_lost_, false) || !has_sideband()) find_threads();
  for (const int tid : std::exchange(begun_, {})) {
    ++late_threads_;
    if (trace_thread(tid)) {
      buffers_.back().begin_late();
    } else {
      ++missed_threads_;
    }
  }
}

bool DriverBackend::trace_thread(int tid) {
  const std::size_t before = ports_.size();
  const auto opened = open_thread(tid);
  Problem failure;
  if (!opened.ok()) {
    failure = opened.failure();
  } else if (opened.value()) {
    const int error = ports_.back()->request(PTKIT_START, nullptr);
    if (error == 0) return true;
    if (error != ESRCH) failure = start_error(error);
  }
  if (ports_.size() != before) {
    buffers_.pop_back();
    ports_.pop_back();
  }
  if (failure && warnings_.empty()) {
    warnings_.push_back(
        warn(WarningCode::TRACING_FAILED, failure->detail).at("Thread " + std::to_string(tid)));
  }
  return false;
}

}  // namespace ptkit::capture
