// The threads that read and encode the lines of the processes in the emulator.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "capture/linux/emulator/guest_process.h"

namespace ptkit::capture {

class Workers {
 public:
  explicit Workers(EmulatorRecording& recording);
  ~Workers();

  void add(std::shared_ptr<GuestProcess> process);
  void remove(const GuestProcess* process);
  void wake();  // ends the workers' pauses after a change

 private:
  using Clock = std::chrono::steady_clock;
  using List = std::vector<std::shared_ptr<GuestProcess>>;

  void run(unsigned worker);
  static bool read_all(const GuestProcess::ReadPass& pass, const List& processes);
  void flush_when_due();

  EmulatorRecording& recording_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  List processes_;
  std::uint64_t changes_ = 0;
  bool stop_ = false;
  std::atomic<Clock::rep> next_flush_;
  std::vector<std::thread> threads_;
};

}  // namespace ptkit::capture
