// Reads DRAKVUF's logs (one JSON object a line): pages of code, and the process of each CR3.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::formats::drakvuf {

// A page that was saved at its first execution.
struct SavedPage {
  std::uint64_t cr3 = 0;
  std::uint64_t address = 0;   // virtual
  std::uint64_t physical = 0;  // page address, as `address`
  std::string file;            // file name without folder
};

// A page became present in a process: the page saved at `physical` is mapped at `address`, too.
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
  std::uint64_t bad_lines = 0;  // lines that are no JSON objects, or lack a member
};

// Adds facts of lines with a CR3. Other lines are skipped.
void read_log(base::Bytes text, Log& log);

}  // namespace ptkit::formats::drakvuf
