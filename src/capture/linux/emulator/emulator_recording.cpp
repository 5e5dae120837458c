#include "capture/linux/emulator/emulator_recording.h"

#include <signal.h>

#include <algorithm>

#include "capture/linux/process/pt_config.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

using trace::WarningCode;

namespace {

// Encoders write trace in chunks, so that the bundle's lock is rarely taken.
constexpr std::size_t kChunkBytes = std::size_t{64} << 10U;
constexpr std::size_t kSmallChunkBytes = std::size_t{1} << 10U;
constexpr std::size_t kMaxWarnings = 100;

bool begins_recording(const TriggerRequest& request) {
  return request.action == TriggerRequest::Action::START;
}

bool is_filter(const FilterRequest& request) { return request.kind == FilterRequest::Kind::FILTER; }

}  // namespace

EmulatorRecording::EmulatorRecording(const RecordOptions& options, formats::PtkWriter writer,
                                     FileParser& parser, const std::atomic<bool>& paused)
    : options_(options),
      generator_config_(capture::generator_config(options)),
      output_(std::move(writer), options.ring, parser),
      paused_(paused),
      started_(std::none_of(options.triggers.begin(), options.triggers.end(), begins_recording)),
      event_counts_(options.triggers.size()),
      symbols_(parser),
      filters_found_(options.filters.size()),
      ranges_(std::any_of(options.filters.begin(), options.filters.end(), is_filter)),
      triggers_found_(options.triggers.size()) {
  // A snapshot has the bytes that have left the packet generator, so ring mode uses smaller chunks.
  generator_config_.chunk_bytes = options.ring != 0 ? kSmallChunkBytes : kChunkBytes;
}

void EmulatorRecording::count(const Counts& more) noexcept {
  const std::uint64_t before = instructions_.fetch_add(more.instructions, std::memory_order_relaxed);
  branches_.fetch_add(more.branches, std::memory_order_relaxed);
  trace_bytes_.fetch_add(more.trace_bytes, std::memory_order_relaxed);
  if (options_.max_instructions != 0 && before + more.instructions >= options_.max_instructions)
    end(Ending::LIMITED);
  if (output_.failed()) end(Ending::FAILED);
}

EmulatorRecording::Counts EmulatorRecording::counts() const noexcept {
  return {instructions_.load(std::memory_order_relaxed), branches_.load(std::memory_order_relaxed),
          trace_bytes_.load(std::memory_order_relaxed)};
}

void EmulatorRecording::end(Ending why) noexcept {
  Ending none = Ending::NONE;
  ending_.compare_exchange_strong(none, why, std::memory_order_relaxed);
}

void EmulatorRecording::expect_child(pid_t parent, pid_t pid) {
  const std::lock_guard lock(mutex_);
  if (seen_.erase(pid) == 0) expected_.emplace(pid, parent);
}

void EmulatorRecording::child_connected(pid_t pid) {
  const std::lock_guard lock(mutex_);
  if (expected_.erase(pid) == 0) seen_.insert(pid);
}

bool EmulatorRecording::misses_child(pid_t parent) {
  const std::lock_guard lock(mutex_);
  std::erase_if(expected_, [](const auto& one) { return ::kill(one.first, 0) != 0; });
  return std::any_of(expected_.begin(), expected_.end(),
                     [parent](const auto& one) { return one.second == parent; });
}

void EmulatorRecording::count_event(std::uint32_t trigger) {
  const TriggerRequest& request = options_.triggers[trigger];
  if (!request.should_fire(event_counts_[trigger].fetch_add(1, std::memory_order_relaxed) + 1)) return;
  switch (request.action) {
    case TriggerRequest::Action::START:
      started_.store(true, std::memory_order_relaxed);
      return;
    case TriggerRequest::Action::STOP:
      return end(Ending::LIMITED);
    case TriggerRequest::Action::SNAPSHOT:
      return request_snapshot();
  }
}

void EmulatorRecording::signal(int number) {
  for (std::uint32_t id = 0; id < options_.triggers.size(); ++id) {
    const TriggerRequest& request = options_.triggers[id];
    if (request.event == TriggerRequest::Event::SIGNAL && request.signal == number) count_event(id);
  }
}

void EmulatorRecording::snapshot() {
  if (!snapshot_requested_.exchange(false) || options_.ring == 0) return;
  output_.snapshot();
  snapshots_.fetch_add(1, std::memory_order_relaxed);
}

void EmulatorRecording::set_filter_found(std::size_t index) {
  const std::lock_guard lock(mutex_);
  filters_found_[index] = true;
}

void EmulatorRecording::add_ranges(const ProcessRanges& process) {
  const std::lock_guard lock(mutex_);
  ranges_.add(process);
}

std::vector<trace::AddressRange> EmulatorRecording::ranges() {
  const std::lock_guard lock(mutex_);
  return ranges_.common();
}

void EmulatorRecording::set_trigger_found(std::size_t index) {
  const std::lock_guard lock(mutex_);
  triggers_found_[index] = true;
}

std::uint32_t EmulatorRecording::warn_of_missing() {
  std::uint32_t missing = 0;
  const auto look = [&](bool found, const std::string& symbol, const std::string& file, const char* what) {
    if (found || (symbol.empty() && file.empty())) return;
    ++missing;
    if (symbol.empty()) return add_warning(warn(WarningCode::FILE_NOT_MAPPED, file).at(what));
    const std::string where = file.empty() ? "any file" : "'" + file + "'";
    std::string names;
    for (const std::string& name : symbols_.similar(symbol)) names += (names.empty() ? "" : ", ") + name;
    add_warning((names.empty() ? warn(WarningCode::FUNCTION_NOT_EXECUTED, symbol, where)
                               : warn(WarningCode::FUNCTION_NOT_EXECUTED_LIKE, symbol, where, names))
                    .at(what));
  };
  for (std::size_t i = 0; i < options_.filters.size(); ++i)
    look(filters_found_[i], options_.filters[i].symbol, options_.filters[i].file, "Filter");
  for (std::size_t i = 0; i < options_.triggers.size(); ++i)
    look(triggers_found_[i], options_.triggers[i].symbol, options_.triggers[i].file, "Trigger");
  return missing;
}

void EmulatorRecording::add_warning(trace::Warning warning) {
  const std::lock_guard lock(mutex_);
  if (warnings_.size() > kMaxWarnings || std::ranges::find(warnings_, warning) != warnings_.end()) return;
  if (warnings_.size() == kMaxWarnings) warning = warn(WarningCode::WARNINGS_DROPPED, kMaxWarnings);
  warnings_.push_back(std::move(warning));
}

std::vector<trace::Warning> EmulatorRecording::warnings() {
  const std::lock_guard lock(mutex_);
  return warnings_;
}

}  // namespace ptkit::capture
