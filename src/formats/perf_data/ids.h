// Facts about events by id: CPU and thread (ID_INDEX), name (the feature EVENT_DESC), and hardware counter
// (AUX_OUTPUT_HW_ID). For .cpp files of this folder only.
#pragma once

#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "formats/perf_event/record.h"
#include "trace/bundle.h"

namespace ptkit::formats::perf {

// From `ns` on, PEBS records with this counter in the trace of a CPU belong to this event.
struct CounterUse {
  std::uint64_t ns = 0;  // perf's clock
  std::int64_t cpu = trace::kNoId;
  std::int64_t tid = trace::kNoId;
  std::uint64_t counter = 0;
  std::uint64_t id = 0;
  std::string event;  // name of the event; empty: unknown
};

class Ids {
 public:
  [[nodiscard]] bool read_id_index(base::Bytes body);  // false: the record is cut
  void read_event_desc(base::Bytes description);
  // Adds an AUX_OUTPUT_HW_ID record. False: the record is cut.
  [[nodiscard]] bool add_counter(base::Bytes body, const Trailer& trailer);

  // Sets CPU and thread of a record's event if the record lacks them.
  void complete(Trailer& trailer) const;
  // Returns true, and counts the record, if it comes from a virtual machine (perf inject --guest-data).
  [[nodiscard]] bool is_of_guest(const Trailer& trailer);

  [[nodiscard]] std::vector<CounterUse> counters() const;  // in the order of time
  [[nodiscard]] std::vector<trace::Warning> warnings() const;

 private:
  struct EventTarget {
    std::int64_t cpu = trace::kNoId;
    std::int64_t tid = trace::kNoId;
    std::uint32_t machine_pid = 0;  // process of the virtual machine; 0: host
  };

  std::unordered_map<std::uint64_t, EventTarget> targets_;
  std::vector<std::string> names_;                             // event names
  std::unordered_map<std::uint64_t, std::size_t> name_index_;  // in names_
  std::vector<CounterUse> counters_;
  std::uint64_t without_event_ = 0;                // AUX_OUTPUT_HW_ID records without an event id
  std::map<std::uint32_t, std::uint64_t> guests_;  // records, by machine_pid
};

}  // namespace ptkit::formats::perf
