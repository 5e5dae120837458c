// What DRAKVUF's logs (one JSON object a line) say beside the streams: pages of code, and whose page tables
// are whose.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::formats::drakvuf {

// A page that was saved when it was executed first.
struct SavedPage {
  std::uint64_t cr3 = 0;
  std::uint64_t address = 0;   // virtual
  std::uint64_t physical = 0;  // both of the page
  std::string file;            // name alone
};

// A page of a process became present: what is saved at `physical` is seen at `address` there, too.
struct PageFault {
  std::uint64_t cr3 = 0;
  std::uint64_t address = 0;
  std::uint64_t physical = 0;
};

struct Log {
  std::vector<SavedPage> pages;
  std::vector<PageFault> faults;
  std::map<std::uint64_t, std::int64_t> processes;                       // CR3 to PID
  std::map<std::pair<std::int64_t, std::int64_t>, std::string> threads;  // PID and TID to the program's name
  std::set<std::uint64_t> taken_over;                                    // CR3 that had another PID later
  std::uint64_t bad_lines = 0;  // that are no JSON objects, or lack a member
};

// Adds what the lines say that tell of page tables; others are skipped.
void read_log(base::Bytes text, Log& log);

}  // namespace ptkit::formats::drakvuf
