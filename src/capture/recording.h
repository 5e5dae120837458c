// What the parts of one recording of emulated programs share: options, the bundle, counters, and whether to
// go on.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "capture/bundle_output.h"
#include "capture/found_ranges.h"
#include "capture/record_options.h"
#include "capture/symbol_finder.h"
#include "softpt/config.h"

namespace ptkit::capture {

class Recording {
 public:
  // Nothing is recorded while `paused`.
  Recording(const RecordOptions& options, formats::PtkWriter writer, const std::atomic<bool>& paused);

  [[nodiscard]] const RecordOptions& options() const noexcept { return options_; }
  [[nodiscard]] const softpt::UnitConfig& unit_config() const noexcept { return unit_config_; }
  [[nodiscard]] BundleOutput& output() noexcept { return output_; }
  // The guest notes the time of each block: CYC packets tell it, or the log of the truth does.
  [[nodiscard]] bool block_times() const noexcept { return options_.cyc || !options_.truth_folder.empty(); }

  struct Counts {
    std::uint64_t instructions = 0;
    std::uint64_t branches = 0;
    std::uint64_t trace_bytes = 0;
  };
  void count(const Counts& more) noexcept;
  [[nodiscard]] Counts counts() const noexcept;

  // Why nothing more is recorded. The first reason counts.
  enum class Ending : std::uint8_t { NONE, INTERRUPTED, DETACHED, LIMITED, FAILED };
  void end(Ending why) noexcept;
  [[nodiscard]] Ending ending() const noexcept { return ending_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool ended() const noexcept { return ending() != Ending::NONE; }
  // What was executed until now, and was not read yet, is not wanted either.
  [[nodiscard]] bool full() const noexcept {
    return ending() == Ending::LIMITED || ending() == Ending::FAILED;
  }

  [[nodiscard]] bool waits_for_start() const noexcept { return !started_.load(std::memory_order_relaxed); }
  [[nodiscard]] bool paused() const noexcept {
    return paused_.load(std::memory_order_relaxed) || waits_for_start();
  }

  // ---- triggers and filters

  void hit(std::uint32_t trigger);  // what it waits for has happened once more
  void signal(int number);          // a program got one
  // Ring mode: what is in the ring is to be kept. The thread that noticed hands over what it has, then keeps.
  [[nodiscard]] bool snapshot_is_due() const noexcept { return due_.load(std::memory_order_relaxed); }
  void ask_for_snapshot() noexcept { due_.store(true, std::memory_order_relaxed); }
  void snapshot();
  [[nodiscard]] std::uint32_t snapshots() const noexcept { return snapshots_; }
  [[nodiscard]] SymbolFinder& symbols() noexcept { return symbols_; }
  void filter_is_found(std::size_t index);
  void ranges_are(const ProcessRanges& process);  // of one that has ended
  [[nodiscard]] std::vector<trace::AddressRange> ranges();
  void trigger_is_found(std::size_t index);
  // Warns of filters and triggers whose place was found nowhere; returns how many they are.
  [[nodiscard]] std::uint32_t warn_of_missing();

  // A call to fork in `parent` returned `pid`: somebody will say hello, unless it has already.
  void expect_child(pid_t parent, pid_t pid);
  void child_is_here(pid_t pid);
  [[nodiscard]] bool child_is_missing(pid_t parent);  // one that still runs has not said hello

  void warn(const std::string& sentence);
  [[nodiscard]] std::vector<std::string> warnings();

 private:
  const RecordOptions& options_;
  softpt::UnitConfig unit_config_;
  BundleOutput output_;
  std::atomic<std::uint64_t> instructions_{0};
  std::atomic<std::uint64_t> branches_{0};
  std::atomic<std::uint64_t> trace_bytes_{0};
  std::atomic<Ending> ending_{Ending::NONE};
  const std::atomic<bool>& paused_;
  std::atomic<bool> started_;
  std::vector<std::atomic<std::uint64_t>> hits_;  // of each trigger
  std::atomic<bool> due_{false};                  // a snapshot
  std::atomic<std::uint32_t> snapshots_{0};
  SymbolFinder symbols_;
  std::mutex mutex_;  // guards what follows
  std::vector<bool> filters_found_;
  FoundRanges ranges_;
  std::vector<bool> triggers_found_;
  std::map<pid_t, pid_t> expected_;  // child, parent
  std::set<pid_t> seen_;
  std::vector<std::string> warnings_;
};

}  // namespace ptkit::capture
