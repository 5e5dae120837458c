#include "capture/linux/emulator/workers.h"

#include <algorithm>

#include "capture/linux/output/bundle_output.h"

namespace ptkit::capture {

namespace {

using std::chrono::microseconds;

constexpr std::uint64_t kBytesPerPass = std::uint64_t{1} << 20;
// A ring takes some milliseconds to fill. An idle worker polls sooner than that, with exponential backoff.
constexpr microseconds kFirstPause{50};
constexpr microseconds kLongestPause{10000};

}  // namespace

Workers::Workers(EmulatorRecording& recording)
    : recording_(recording), next_flush_((Clock::now() + kFlushInterval).time_since_epoch().count()) {
  const unsigned count = std::max(1U, std::thread::hardware_concurrency());
  for (unsigned worker = 0; worker < count; ++worker) threads_.emplace_back([this, worker] { run(worker); });
}

Workers::~Workers() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void Workers::add(std::shared_ptr<GuestProcess> process) {
  {
    const std::lock_guard lock(mutex_);
    processes_.push_back(std::move(process));
  }
  wake();
}

void Workers::remove(const GuestProcess* process) {
  const std::lock_guard lock(mutex_);
  std::erase_if(processes_, [process](const auto& one) { return one.get() == process; });
  ++changes_;
}

void Workers::wake() {
  {
    const std::lock_guard lock(mutex_);
    ++changes_;
  }
  changed_.notify_all();
}

void Workers::run(unsigned worker) {
  List processes;
  std::uint64_t seen = ~std::uint64_t{0};
  microseconds pause = kFirstPause;
  auto next_flush = Clock::now() + kFlushInterval;
  for (;;) {
    const auto now = Clock::now();
    const bool flush = now >= next_flush;
    if (flush) next_flush = now + kFlushInterval;
    const bool progressed = read_all({worker, kBytesPerPass, flush}, processes);
    flush_when_due();
    pause = progressed ? kFirstPause : std::min(2 * pause, kLongestPause);
    std::unique_lock lock(mutex_);
    if (!progressed && !stop_ && seen == changes_) changed_.wait_for(lock, pause);
    if (stop_) return;
    if (seen == changes_) continue;
    seen = changes_;
    processes = processes_;
    pause = kFirstPause;
  }
}

bool Workers::read_all(const GuestProcess::ReadPass& pass, const List& processes) {
  bool progressed = false;
  for (const auto& process : processes) progressed |= !process->done() && process->read(pass);
  return progressed;
}

// Flushes the bundle each kFlushInterval, so that little is lost if this process is killed.
void Workers::flush_when_due() {
  const auto now = Clock::now();
  Clock::rep due = next_flush_.load(std::memory_order_relaxed);
  if (now.time_since_epoch().count() < due) return;
  if (next_flush_.compare_exchange_strong(due, (now + kFlushInterval).time_since_epoch().count()))
    recording_.output().flush();
}

}  // namespace ptkit::capture
