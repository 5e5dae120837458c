// What is said of events by their numbers: where each counts (ID_INDEX), how it is called (the feature
// EVENT_DESC), and which counter of the processor it has (AUX_OUTPUT_HW_ID). For .cpp files of this folder
// only.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/perf_record.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// From a time on, PEBS records in the trace of a processor that name this counter are of this event.
struct CounterUse {
  std::uint64_t ns = 0;  // of perf's clock
  std::int64_t cpu = trace::kNoId;
  std::int64_t tid = trace::kNoId;
  std::uint64_t counter = 0;
  std::uint64_t id = 0;
  std::string event;  // its name; empty: not known
};

class Ids {
 public:
  [[nodiscard]] bool take_index(base::Bytes body);  // false: it is cut
  void take_names(base::Bytes description);
  // AUX_OUTPUT_HW_ID. False: it is cut.
  [[nodiscard]] bool take_counter(base::Bytes body, const Trailer& who);

  // Puts in where a record's event counts, if the record does not say it.
  void complete(Trailer& who) const;
  // Whether a record comes from a virtual machine (perf inject --guest-data); counts them.
  [[nodiscard]] bool is_of_guest(const Trailer& who);

  [[nodiscard]] std::vector<CounterUse> counters() const;   // in the order of time
  [[nodiscard]] std::vector<std::string> problems() const;  // whole sentences

 private:
  struct Place {
    std::int64_t cpu = trace::kNoId;
    std::int64_t tid = trace::kNoId;
    std::uint32_t machine_pid = 0;  // of the virtual machine's process; 0: it is no virtual machine's
  };

  std::unordered_map<std::uint64_t, Place> places_;
  std::vector<std::string> names_;                          // of events
  std::unordered_map<std::uint64_t, std::size_t> name_of_;  // in names_
  std::vector<CounterUse> counters_;
  std::uint64_t without_event_ = 0;                // counters
  std::map<std::uint32_t, std::uint64_t> guests_;  // records, by machine_pid
};

}  // namespace ptkit::formats::perf
