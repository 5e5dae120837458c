// Resolves filters and triggers in one process: symbols and file offsets become addresses when files are
// mapped.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "capture/linux/emulator/code_store.h"
#include "capture/linux/emulator/emulator_recording.h"
#include "capture/linux/emulator/filter_ranges.h"
#include "capture/linux/encode/guest_code.h"
#include "capture/linux/process/address_filter.h"

namespace ptkit::capture {

class FilterTriggers {
 public:
  // `executed`: the process's code.
  FilterTriggers(EmulatorRecording& recording, const CodeStore& executed);

  // The filter for the process's encoders; null if they need none.
  [[nodiscard]] const AddressFilter* filter() const noexcept { return needed_ ? &filter_ : nullptr; }
  // Process `pid` has mapped the file at [begin, end), from `offset` on.
  void map(pid_t pid, std::uint64_t begin, std::uint64_t end, std::uint64_t offset, const std::string& path);
  // The resolved ranges. Complete when the process has ended or called exec().
  [[nodiscard]] const ProcessRanges& ranges() const noexcept { return ranges_; }
  // While the recording waits for a START trigger: the index of the first block that starts it, or
  // blocks.size().
  [[nodiscard]] std::size_t find_start(const GuestCode& code, std::span<const std::uint32_t> blocks);

 private:
  struct Range {
    std::uint64_t first = 0;
    std::uint64_t last = 0;
  };
  struct Mapping {
    pid_t pid = 0;
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t offset = 0;
    const std::string& path;
  };
  struct Start {
    std::uint64_t address = 0;
    std::uint32_t trigger = 0;
  };

  [[nodiscard]] std::vector<Range> resolve(const Mapping& mapping, const std::string& file,
                                           const std::string& symbol, const Range& given);
  void add(FilterRequest::Kind kind, const Range& range);
  void add(const TriggerRequest& request, std::uint32_t id, std::uint64_t address);

  EmulatorRecording& recording_;
  const CodeStore& executed_;
  bool needed_;
  AddressFilter filter_;
  ProcessRanges ranges_;
  std::mutex mutex_;  // guards what follows
  std::vector<Start> starts_;
};

}  // namespace ptkit::capture
