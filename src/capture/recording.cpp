#include "capture/recording.h"

#include <signal.h>

#include <algorithm>

#include "capture/configuration.h"

namespace ptkit::capture {

namespace {

// Trace goes to the bundle in pieces that make its lock cheap.
constexpr std::size_t kChunkBytes = std::size_t{64} << 10U;
constexpr std::size_t kMaxWarnings = 100;

}  // namespace

Recording::Recording(const RecordOptions& options, formats::PtkWriter writer, const std::atomic<bool>& paused)
    : options_(options),
      unit_config_(capture::unit_config(options)),
      output_(std::move(writer)),
      paused_(paused) {
  unit_config_.chunk_bytes = kChunkBytes;
}

void Recording::count(const Counts& more) noexcept {
  const std::uint64_t before = instructions_.fetch_add(more.instructions, std::memory_order_relaxed);
  branches_.fetch_add(more.branches, std::memory_order_relaxed);
  trace_bytes_.fetch_add(more.trace_bytes, std::memory_order_relaxed);
  if (options_.max_instructions != 0 && before + more.instructions >= options_.max_instructions)
    end(Ending::LIMITED);
  if (output_.failed()) end(Ending::FAILED);
}

Recording::Counts Recording::counts() const noexcept {
  return {instructions_.load(std::memory_order_relaxed), branches_.load(std::memory_order_relaxed),
          trace_bytes_.load(std::memory_order_relaxed)};
}

void Recording::end(Ending why) noexcept {
  Ending none = Ending::NONE;
  ending_.compare_exchange_strong(none, why, std::memory_order_relaxed);
}

void Recording::expect_child(pid_t parent, pid_t pid) {
  const std::lock_guard lock(mutex_);
  if (seen_.erase(pid) == 0) expected_.emplace(pid, parent);
}

void Recording::child_is_here(pid_t pid) {
  const std::lock_guard lock(mutex_);
  if (expected_.erase(pid) == 0) seen_.insert(pid);
}

bool Recording::child_is_missing(pid_t parent) {
  const std::lock_guard lock(mutex_);
  std::erase_if(expected_, [](const auto& one) { return ::kill(one.first, 0) != 0; });
  return std::any_of(expected_.begin(), expected_.end(),
                     [parent](const auto& one) { return one.second == parent; });
}

void Recording::warn(const std::string& sentence) {
  const std::lock_guard lock(mutex_);
  if (warnings_.size() > kMaxWarnings ||
      std::find(warnings_.begin(), warnings_.end(), sentence) != warnings_.end())
    return;
  warnings_.push_back(warnings_.size() < kMaxWarnings ? sentence : "There are more warnings than are kept.");
}

std::vector<std::string> Recording::warnings() {
  const std::lock_guard lock(mutex_);
  return warnings_;
}

}  // namespace ptkit::capture
