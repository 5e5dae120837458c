#include "tables/calls/call_workers.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

namespace ptkit::tables::calls {

CallWorkers::CallWorkers(std::size_t streams, std::size_t threads, Make make, Take take)
    : make_(std::move(make)), take_(std::move(take)), streams_(streams), read_(streams) {
  start(std::clamp<std::size_t>(threads, 1, std::max<std::size_t>(streams, 1)));
}

// Creates as many threads as the system permits.
void CallWorkers::start(std::size_t count) {
  working_ = count;
  try {
    for (std::size_t i = 0; i < count; ++i) threads_.emplace_back([this] { work(); });
  } catch (const std::system_error&) {
    std::unique_lock lock(mutex_);
    working_ -= count - threads_.size();
    if (!threads_.empty()) return;
    ++working_;
    lock.unlock();
    work();
  }
}

CallWorkers::~CallWorkers() {
  stop_ = true;
  {
    const std::scoped_lock lock(mutex_);
    for (StreamCalls* const calls : reading_) calls->cancel();
  }
  for (std::thread& thread : threads_) thread.join();
}

bool CallWorkers::wait_for(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return done_.wait_for(lock, time, [this] { return working_ == 0; });
}

// Enters a reader among those that the end of the workers cancels.
class CallWorkers::Reading {
 public:
  Reading(CallWorkers& workers, StreamCalls& calls) : workers_(workers), calls_(calls) {
    const std::scoped_lock lock(workers_.mutex_);
    workers_.reading_.push_back(&calls_);
  }
  ~Reading() {
    const std::scoped_lock lock(workers_.mutex_);
    std::erase(workers_.reading_, &calls_);
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  CallWorkers& workers_;
  StreamCalls& calls_;
};

bool CallWorkers::read(StreamCalls& calls) {
  const Reading reading(*this, calls);
  auto step = StreamCalls::Step::MORE;
  while (step == StreamCalls::Step::MORE && !stop_) step = calls.step();
  return step != StreamCalls::Step::NO_MEMORY && step != StreamCalls::Step::NO_ROOM;
}

// Takes the streams that are read, up to the first one that is not.
void CallWorkers::take_in_order(std::unique_lock<std::mutex>& lock) {
  if (taking_) return;
  taking_ = true;
  while (next_take_ < streams_ && read_[next_take_] != nullptr && !stop_) {
    const std::size_t index = next_take_++;
    const std::unique_ptr<StreamCalls> calls = std::move(read_[index]);
    lock.unlock();
    take_(index, *calls);
    lock.lock();
  }
  taking_ = false;
}

void CallWorkers::work() {
  try {
    for (std::size_t index = next_++; index < streams_ && !stop_; index = next_++) {
      auto calls = make_(index);
      if (!read(*calls)) throw std::bad_alloc();
      std::unique_lock lock(mutex_);
      read_[index] = std::move(calls);
      take_in_order(lock);
    }
  } catch (const std::bad_alloc&) {
    out_of_memory_ = true;
    stop_ = true;
  }
  const std::scoped_lock lock(mutex_);
  --working_;
  done_.notify_all();
}

}  // namespace ptkit::tables::calls
