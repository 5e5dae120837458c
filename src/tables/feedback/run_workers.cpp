#include "tables/feedback/run_workers.h"

#include <algorithm>
#include <new>
#include <system_error>
#include <utility>

namespace ptkit::tables::feedback {

RunWorkers::RunWorkers(Input input) : input_(std::move(input)), all_(input_.empty()) { start(); }

// Creates as many threads as the system permits.
void RunWorkers::start() {
  const std::size_t count =
      std::clamp<std::size_t>(input_.threads, 1, std::max<std::size_t>(input_.streams, 1));
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

RunWorkers::~RunWorkers() {
  stop_at(false);
  for (std::thread& thread : threads_) thread.join();
}

bool RunWorkers::wait_for(std::chrono::milliseconds time) {
  std::unique_lock lock(mutex_);
  return done_.wait_for(lock, time, [this] { return working_ == 0; });
}

void RunWorkers::stop_at(bool no_memory) noexcept {
  if (no_memory) out_of_memory_ = true;
  stop_ = true;
  const std::scoped_lock lock(mutex_);
  for (StreamRuns* const stream : reading_) stream->cancel();
}

// Enters a reader among those that the end of the workers cancels.
class RunWorkers::Reading {
 public:
  Reading(RunWorkers& workers, StreamRuns& stream) : workers_(workers), stream_(stream) {
    const std::scoped_lock lock(workers_.mutex_);
    workers_.reading_.push_back(&stream_);
  }
  ~Reading() {
    const std::scoped_lock lock(workers_.mutex_);
    std::erase(workers_.reading_, &stream_);
  }
  Reading(const Reading&) = delete;
  Reading& operator=(const Reading&) = delete;

 private:
  RunWorkers& workers_;
  StreamRuns& stream_;
};

// False: out of memory. What a thread has counted is going to be copied once.
bool RunWorkers::read(StreamRuns& stream, const FileRuns& runs, columns::RowBudget::Share& share) {
  const Reading reading(*this, stream);
  for (auto step = StreamRuns::Step::MORE; step != StreamRuns::Step::END && !stop_;) {
    step = stream.step();
    if (step == StreamRuns::Step::NO_MEMORY || step == StreamRuns::Step::NO_ROOM) return stop_;
    if (input_.budget == nullptr) continue;
    const std::uint64_t bytes = runs.bytes();
    if (input_.budget->report_bytes(share, bytes, bytes) == columns::RowBudget::Answer::STOP) return false;
  }
  return true;
}

void RunWorkers::work() {
  columns::RowBudget::Share share;
  bool good = false;
  try {
    FileRuns own = input_.empty();
    good = true;
    for (std::size_t index = next_++; good && index < input_.streams && !stop_; index = next_++) {
      const auto stream = input_.make(index, own);
      good = read(*stream, own, share);
    }
    if (good && !stop_) {
      own.flush();
      const std::scoped_lock lock(mutex_);
      all_.add_all(std::move(own));
    }
  } catch (const std::bad_alloc&) {
    good = false;
  }
  if (!good) stop_at(true);
  const std::scoped_lock lock(mutex_);
  --working_;
  done_.notify_all();
}

}  // namespace ptkit::tables::feedback
