// Straight runs: the instructions from the target of a taken branch to the next taken branch.
//
//        from               begin           end
//   ---> taken branch ----> | | | | | | | | taken branch ---->
//                           `---- run ----'
#pragma once

#include <cstdint>

#include "code/image/image.h"
#include "flow/rows/rows.h"
#include "tables/feedback/count_table.h"

namespace ptkit::tables::feedback {

enum RunFlag : std::uint8_t {
  RUN_FROM = 1,   // a taken branch led to the run: `kind` and `from` are its own
  RUN_BEGIN = 2,  // `begin` is known
  RUN_END = 4,    // a taken branch at `end` ends the run
  RUN_CUT = 8,    // something else ends it: `end` is the last instruction that was executed
};

// A run by its addresses in memory. A view is the code of a space at a time.
struct Run {
  const code::image::CodeView* from_view = nullptr;  // of from_ip
  const code::image::CodeView* view = nullptr;
  std::uint64_t from_ip = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t instructions = 0;
  flow::BranchKind kind = flow::BranchKind::COND;
  std::uint8_t flags = 0;

  bool operator==(const Run&) const = default;
  [[nodiscard]] std::uint64_t hash() const noexcept {
    const std::uint64_t views = view == nullptr ? 0 : view->id();
    return mixed(from_ip + mixed(begin + mixed(end ^ instructions << 32U) + views));
  }
};

// A run by its file. Addresses are RVAs: runs of several processes and load addresses are the same run.
struct FileRun {
  std::uint64_t from = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t instructions = 0;  // 0: only the branch is known, and what it leads to
  std::int32_t from_file = -1;     // index in TraceBundle::files; -1: `from` is code of no file, and 0
  std::int32_t file = -1;          // the same for `begin`
  flow::BranchKind kind = flow::BranchKind::COND;
  std::uint8_t flags = 0;

  bool operator==(const FileRun&) const = default;
  [[nodiscard]] std::uint64_t hash() const noexcept {
    const auto files =
        std::uint64_t{static_cast<std::uint32_t>(from_file)} << 32U | static_cast<std::uint32_t>(file);
    return mixed(from + mixed(begin + mixed(end ^ instructions << 32U) + files));
  }
};

// What runs of files do not have.
struct RunTotals {
  std::uint64_t instructions = 0;           // all that were executed
  std::uint64_t outside_instructions = 0;   // in code of no file
  std::uint64_t unknown_instructions = 0;   // of which the address or the code is not known
  std::uint64_t crossing_instructions = 0;  // in runs that go from one file on into another
  std::uint64_t unselected_instructions = 0;
  std::uint64_t branches = 0;          // taken
  std::uint64_t outside_branches = 0;  // with no end in a file
  std::uint64_t unselected_branches = 0;
  std::uint64_t errors = 0;
  std::uint64_t gaps = 0;

  // Calls `visit` with each of them, and with its name.
  template <typename Visit>
  static void for_each(const Visit& visit) {
    visit("instructions", &RunTotals::instructions);
    visit("outside_instructions", &RunTotals::outside_instructions);
    visit("unknown_instructions", &RunTotals::unknown_instructions);
    visit("crossing_instructions", &RunTotals::crossing_instructions);
    visit("unselected_instructions", &RunTotals::unselected_instructions);
    visit("branches", &RunTotals::branches);
    visit("outside_branches", &RunTotals::outside_branches);
    visit("unselected_branches", &RunTotals::unselected_branches);
    visit("errors", &RunTotals::errors);
    visit("gaps", &RunTotals::gaps);
  }
  RunTotals& operator+=(const RunTotals& more) noexcept {
    for_each([&](const char*, auto total) { this->*total += more.*total; });
    return *this;
  }
};

}  // namespace ptkit::tables::feedback
