// Whose hits of triggers count: of whole processors the kernel tells everybody's.
#pragma once

#include <cstdint>
#include <map>
#include <set>

#include "capture/system_record.h"

namespace ptkit::capture {

class PerfFamily {
 public:
  // Of the process `pid` and, with `children`, of those that it begins; 0: of everybody.
  void begin(std::int32_t pid, bool children);
  // A record of the system, processes that begin before what they do.
  void take(const SystemRecord& record);

  [[nodiscard]] bool has(std::int32_t pid) const { return pid_ == 0 || members_.count(pid) != 0; }
  // One that had not executed another program by then: an address means what it did.
  [[nodiscard]] bool has_program(std::int32_t pid, std::uint64_t tsc) const;

 private:
  void add_child(const SystemRecord& fork);

  std::int32_t pid_ = 0;
  bool children_ = false;
  std::set<std::int32_t> members_;                  // where there is a process
  std::map<std::int32_t, std::uint64_t> executed_;  // when it executed another program first
};

}  // namespace ptkit::capture
