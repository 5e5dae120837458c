#include "capture/recording.h"

#include <signal.h>

#include <algorithm>

#include "capture/configuration.h"

namespace ptkit::capture {

namespace {

// Trace goes to the bundle in pieces that make its lock cheap.
constexpr std::size_t kChunkBytes = std::size_t{64} << 10U;
constexpr std::size_t kSmallChunkBytes = std::size_t{1} << 10U;
constexpr std::size_t kMaxWarnings = 100;

bool begins_recording(const TriggerRequest& request) {
  return request.action == TriggerRequest::Action::START;
}

bool is_filter(const FilterRequest& request) { return request.kind == FilterRequest::Kind::FILTER; }

}  // namespace

Recording::Recording(const RecordOptions& options, formats::PtkWriter writer, const std::atomic<bool>& paused)
    : options_(options),
      unit_config_(capture::unit_config(options)),
      output_(std::move(writer), options.ring_bytes),
      paused_(paused),
      started_(std::none_of(options.triggers.begin(), options.triggers.end(), begins_recording)),
      hits_(options.triggers.size()),
      filters_found_(options.filters.size()),
      ranges_(std::any_of(options.filters.begin(), options.filters.end(), is_filter)),
      triggers_found_(options.triggers.size()) {
  // A snapshot has what has left the unit.
  unit_config_.chunk_bytes = options.ring_bytes != 0 ? kSmallChunkBytes : kChunkBytes;
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

void Recording::hit(std::uint32_t trigger) {
  const TriggerRequest& request = options_.triggers[trigger];
  if (!request.is_due(hits_[trigger].fetch_add(1, std::memory_order_relaxed) + 1)) return;
  switch (request.action) {
    case TriggerRequest::Action::START:
      started_.store(true, std::memory_order_relaxed);
      return;
    case TriggerRequest::Action::STOP:
      return end(Ending::LIMITED);
    case TriggerRequest::Action::SNAPSHOT:
      return ask_for_snapshot();
  }
}

void Recording::signal(int number) {
  for (std::uint32_t id = 0; id < options_.triggers.size(); ++id) {
    const TriggerRequest& request = options_.triggers[id];
    if (request.event == TriggerRequest::Event::SIGNAL && request.signal == number) hit(id);
  }
}

void Recording::snapshot() {
  if (!due_.exchange(false) || options_.ring_bytes == 0) return;
  output_.snapshot();
  snapshots_.fetch_add(1, std::memory_order_relaxed);
}

void Recording::filter_is_found(std::size_t index) {
  const std::lock_guard lock(mutex_);
  filters_found_[index] = true;
}

void Recording::ranges_are(const ProcessRanges& process) {
  const std::lock_guard lock(mutex_);
  ranges_.add(process);
}

std::vector<trace::AddressRange> Recording::ranges() {
  const std::lock_guard lock(mutex_);
  return ranges_.common();
}

void Recording::trigger_is_found(std::size_t index) {
  const std::lock_guard lock(mutex_);
  triggers_found_[index] = true;
}

std::uint32_t Recording::warn_of_missing() {
  std::uint32_t missing = 0;
  const auto look = [&](bool found, const std::string& symbol, const std::string& file, const char* what) {
    if (found || (symbol.empty() && file.empty())) return;
    ++missing;
    std::string sentence = what;
    if (symbol.empty()) return warn(sentence + file + " was not mapped, or not that part of it.");
    sentence +=
        "no function " + symbol + (file.empty() ? " in any file" : " in " + file) + " that was executed";
    std::string names;
    for (const std::string& name : symbols_.similar(symbol)) names += (names.empty() ? "" : ", ") + name;
    warn(sentence + (names.empty() ? "." : "; there are " + names + "."));
  };
  for (std::size_t i = 0; i < options_.filters.size(); ++i)
    look(filters_found_[i], options_.filters[i].symbol, options_.filters[i].file, "Filter: ");
  for (std::size_t i = 0; i < options_.triggers.size(); ++i)
    look(triggers_found_[i], options_.triggers[i].symbol, options_.triggers[i].file, "Trigger: ");
  return missing;
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
