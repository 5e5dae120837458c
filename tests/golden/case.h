// One row of a manifest, with its files in memory: the input of the printers of the golden runner.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "packet/errata.h"
#include "trace/bundle.h"

namespace ptkit::golden {

struct Case {
  // The columns of the manifest.
  std::string test;
  std::string tool;                  // "ptdump" or "ptxed"
  std::string decoder;               // "ptdump", "insn" or "block"
  std::string effective_decoder;     // with the options applied
  std::vector<std::string> options;  // split at blanks, with those that `configuration` already reflects
  std::string expected_file;

  std::vector<std::uint8_t> stream;  // <test>.pt
  std::vector<std::uint8_t> code;    // <test>.bin; empty if there is none
  std::uint64_t code_address = 0;    // where it is loaded
  std::string expected;              // contents of expected_file

  // From --cpu, --mtc-freq, --nom-freq, --cpuid-0x15.*, --filter:* and --event:iflags (event trace was on).
  trace::Configuration configuration;
  // Without --cpu the tools apply no erratum at all; with it, those of the model.
  packet::Errata errata;
  bool cpu_given = false;

  [[nodiscard]] bool has_option(const std::string& name) const {
    for (const std::string& option : options) {
      if (option == name) return true;
    }
    return false;
  }
};

// The tool's output for this case: lines, each ended by '\n'. Blanks are folded before lines are
// compared.
[[nodiscard]] std::string run_ptdump(const Case& test_case);
[[nodiscard]] std::string run_ptxed(const Case& test_case);
[[nodiscard]] std::string run_events(const Case& test_case);
[[nodiscard]] std::string run_times(const Case& test_case);

// The case's stream and code as a recording.
[[nodiscard]] std::shared_ptr<trace::TraceBundle> bundle_of(const Case& test_case);

}  // namespace ptkit::golden
