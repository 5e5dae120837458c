// What filters and triggers mean in one process: requests by name or offset become addresses as files are
// mapped.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "capture/address_filter.h"
#include "capture/code_store.h"
#include "capture/found_ranges.h"
#include "capture/guest_code.h"
#include "capture/recording.h"

namespace ptkit::capture {

class Conditions {
 public:
  // `executed`: the process's code.
  Conditions(Recording& recording, const CodeStore& executed);

  // For the process's encoders; null if they need none.
  [[nodiscard]] const AddressFilter* filter() const noexcept { return needed_ ? &filter_ : nullptr; }
  // [begin, end) of process `pid` shows the file from `offset` on.
  void map(pid_t pid, std::uint64_t begin, std::uint64_t end, std::uint64_t offset, const std::string& path);
  // What is known of them when the process has ended, or its image has.
  [[nodiscard]] const ProcessRanges& ranges() const noexcept { return ranges_; }
  // While recording waits for a trigger: the place of the block among these that it was waiting for, or their
  // number.
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

  Recording& recording_;
  const CodeStore& executed_;
  bool needed_;
  AddressFilter filter_;
  ProcessRanges ranges_;
  std::mutex mutex_;  // guards what follows
  std::vector<Start> starts_;
};

}  // namespace ptkit::capture
