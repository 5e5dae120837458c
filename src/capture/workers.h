// The threads that read what processes in the emulator tell.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "capture/guest_process.h"

namespace ptkit::capture {

class Workers {
 public:
  explicit Workers(Recording& recording);
  ~Workers();

  void add(std::shared_ptr<GuestProcess> process);
  void remove(const GuestProcess* process);
  void wake();  // something has changed that is not to be found late

 private:
  using Clock = std::chrono::steady_clock;
  using List = std::vector<std::shared_ptr<GuestProcess>>;

  void run(unsigned worker);
  static bool visit_all(const GuestProcess::Visit& how, const List& processes);
  void flush_sometimes();

  Recording& recording_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  List processes_;
  std::uint64_t changes_ = 0;
  bool stop_ = false;
  std::atomic<Clock::rep> next_flush_;
  std::vector<std::thread> threads_;
};

}  // namespace ptkit::capture
