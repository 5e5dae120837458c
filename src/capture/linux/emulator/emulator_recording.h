// The state that all parts of an emulator recording share: options, the bundle, counters, and why it ended.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "capture/common/record_options.h"
#include "capture/linux/emulator/filter_ranges.h"
#include "capture/linux/emulator/plugin/channel.h"
#include "capture/linux/files/symbol_finder.h"
#include "capture/linux/output/bundle_output.h"
#include "capture/linux/sideband/jit_names.h"
#include "trace_unit/generator/config.h"

namespace ptkit::capture {

class EmulatorRecording {
 public:
  // Nothing is recorded while `paused`.
  EmulatorRecording(const RecordOptions& options, formats::PtkWriter writer, FileParser& parser,
                    const std::atomic<bool>& paused);

  [[nodiscard]] const RecordOptions& options() const noexcept { return options_; }
  [[nodiscard]] const trace_unit::generator::GeneratorConfig& generator_config() const noexcept {
    return generator_config_;
  }
  [[nodiscard]] BundleOutput& output() noexcept { return output_; }
  [[nodiscard]] JitNames& jit_names() noexcept { return jit_names_; }
  // Whether the guest writes time and RSP of each block, for the execution logs.
  [[nodiscard]] bool block_times() const noexcept { return !options_.log_folder().empty(); }
  // Size of the guest's lines (SharedMemoryHeader::line_bytes).
  [[nodiscard]] std::size_t line_bytes() const noexcept {
    return block_times() ? plugin::kShortLineBytes : untimed_line_bytes();
  }
  // Number of blocks of which packets tell the time of the first one only.
  [[nodiscard]] std::size_t line_blocks() const noexcept { return plugin::line_blocks(untimed_line_bytes()); }

  struct Counts {
    std::uint64_t instructions = 0;
    std::uint64_t branches = 0;
    std::uint64_t trace_bytes = 0;
  };
  void count(const Counts& more) noexcept;
  [[nodiscard]] Counts counts() const noexcept;

  // Why the recording has ended. The first reason counts.
  enum class Ending : std::uint8_t { NONE, INTERRUPTED, DETACHED, LIMITED, FAILED };
  void end(Ending why) noexcept;
  [[nodiscard]] Ending ending() const noexcept { return ending_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool ended() const noexcept { return ending() != Ending::NONE; }
  // Whether unread lines are discarded, too.
  [[nodiscard]] bool full() const noexcept {
    return ending() == Ending::LIMITED || ending() == Ending::FAILED;
  }

  [[nodiscard]] bool waits_for_start() const noexcept { return !started_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool paused() const noexcept {
    return paused_.load(std::memory_order_relaxed) || waits_for_start();
  }

  // ---- triggers and filters

  void count_event(std::uint32_t trigger);  // the event of the trigger has happened once more
  void signal(int number);                  // a program received a signal
  // Ring mode: the ring is to be written to the bundle. The thread that sees the request flushes its encoder,
  // then calls snapshot().
  [[nodiscard]] bool snapshot_requested() const noexcept {
    return snapshot_requested_.load(std::memory_order_relaxed);
  }
  void request_snapshot() noexcept { snapshot_requested_.store(true, std::memory_order_relaxed); }
  void snapshot();
  [[nodiscard]] std::uint32_t snapshots() const noexcept { return snapshots_; }
  [[nodiscard]] SymbolFinder& symbols() noexcept { return symbols_; }
  void set_filter_found(std::size_t index);
  void add_ranges(const ProcessRanges& process);  // `process` has ended
  [[nodiscard]] std::vector<trace::AddressRange> ranges();
  void set_trigger_found(std::size_t index);
  // Warns of each filter and trigger with an address that was not found. Returns their number.
  [[nodiscard]] std::uint32_t warn_of_missing();

  // fork() in `parent` returned `pid`: the child connects, unless it has connected already.
  void expect_child(pid_t parent, pid_t pid);
  void child_connected(pid_t pid);
  [[nodiscard]] bool misses_child(pid_t parent);  // whether a running child has not connected

  void add_warning(trace::Warning warning);
  [[nodiscard]] std::vector<trace::Warning> warnings();

 private:
  // A block's time is known once in a line, and triggers act at the ends of lines. A long line usually takes
  // less than this CycThresh, 512 cycles, so CYC packets are not fewer.
  static constexpr std::uint8_t kLongLineThreshold = 10;
  [[nodiscard]] std::size_t untimed_line_bytes() const noexcept {
    const bool cyc = generator_config_.cyc && generator_config_.cyc_threshold < kLongLineThreshold;
    return cyc || !options_.triggers.empty() ? plugin::kShortLineBytes : plugin::kLongLineBytes;
  }

  const RecordOptions& options_;
  trace_unit::generator::GeneratorConfig generator_config_;
  BundleOutput output_;
  JitNames jit_names_{JitNames::Kinds::MAPS_AND_DUMPS};
  std::atomic<std::uint64_t> instructions_{0};
  std::atomic<std::uint64_t> branches_{0};
  std::atomic<std::uint64_t> trace_bytes_{0};
  std::atomic<Ending> ending_{Ending::NONE};
  const std::atomic<bool>& paused_;
  std::atomic<bool> started_;
  std::vector<std::atomic<std::uint64_t>> event_counts_;  // by trigger
  std::atomic<bool> snapshot_requested_{false};
  std::atomic<std::uint32_t> snapshots_{0};
  SymbolFinder symbols_;
  std::mutex mutex_;  // guards what follows
  std::vector<bool> filters_found_;
  FilterRanges ranges_;
  std::vector<bool> triggers_found_;
  std::map<pid_t, pid_t> expected_;  // child, parent
  std::set<pid_t> seen_;
  std::vector<trace::Warning> warnings_;
};

// "Process 12": the subject of a warning.
[[nodiscard]] inline std::string process_label(pid_t pid) { return "Process " + std::to_string(pid); }

}  // namespace ptkit::capture
