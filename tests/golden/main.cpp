// ptkit_golden --dir DIR [--only SUBSTRING] [--verbose] [--json]: decodes every row of DIR/manifest.tsv,
// prints the lines of libipt's ptdump and ptxed, and compares them line by line with runs of blanks folded.
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>
#include <sstream>

#include "allowed.h"
#include "manifest.h"

namespace ptkit::golden {
namespace {

enum class Outcome { PASSED, FAILED, ALLOWED, SKIPPED };

struct Result {
  Outcome outcome = Outcome::PASSED;
  std::string reason;
  std::string difference;
};

struct Arguments {
  std::string directory;
  std::string only;
  bool verbose = false;
  bool json = false;
};

// Lines with runs of blanks as one and none at the end; empty lines are dropped.
std::vector<std::string> folded_lines(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    std::string folded;
    for (const char letter : line) {
      const bool blank = letter == ' ' || letter == '\t' || letter == '\r';
      if (!blank) folded += letter;
      if (blank && !folded.empty() && folded.back() != ' ') folded += ' ';
    }
    while (!folded.empty() && folded.back() == ' ') folded.pop_back();
    if (!folded.empty()) lines.push_back(folded);
  }
  return lines;
}

// Events without the time before them (--event:time), which is libipt's own estimate.
void drop_event_times(std::vector<std::string>& lines) {
  constexpr std::size_t kDigits = 16;
  for (std::string& line : lines) {
    if (line.size() > kDigits + 2 && line[0] == '[' && line[kDigits + 1] == ' ') line.erase(1, kDigits + 1);
  }
}

// The first lines that differ, with one line of context before.
std::string difference_of(const std::vector<std::string>& expected, const std::vector<std::string>& actual,
                          bool whole) {
  std::size_t at = 0;
  while (at < expected.size() && at < actual.size() && expected[at] == actual[at]) ++at;
  if (at == expected.size() && at == actual.size()) return {};
  const std::size_t shown = whole ? 1000 : 4;
  std::string text = "    line " + std::to_string(at + 1) + ":\n";
  if (at > 0) text += "      " + expected[at - 1] + "\n";
  for (std::size_t line = at; line < expected.size() && line < at + shown; ++line)
    text += "    - " + expected[line] + "\n";
  for (std::size_t line = at; line < actual.size() && line < at + shown; ++line)
    text += "    + " + actual[line] + "\n";
  return text;
}

struct Printer {
  std::string_view tool;
  std::string (*run)(const Case&);
};

constexpr Printer kPrinters[] = {
    {"ptdump", run_ptdump},
    {"ptxed", run_ptxed},
    {"events", run_events},
    {"times", run_times},
};

const Printer* printer_of(const Case& test_case) {
  for (const Printer& printer : kPrinters) {
    if (printer.tool == test_case.tool) return &printer;
  }
  return nullptr;
}

std::string reason_to_skip(const Case& test_case) {
  if (printer_of(test_case) == nullptr) return "this build has no printer for " + test_case.tool;
  if (test_case.tool != "ptdump") return {};
  for (const char* option : {"--time", "--time-delta", "--tcal"}) {
    if (test_case.has_option(option)) return "time options: they print libipt's own estimate";
  }
  return {};
}

std::string allowed_reason(const Case& test_case) {
  for (const AllowedDifference& allowed : kAllowedDifferences) {
    if (allowed.test != test_case.test || allowed.tool != test_case.tool) continue;
    if (allowed.decoder.empty() || allowed.decoder == test_case.decoder) return std::string(allowed.reason);
  }
  return {};
}

Result run_case(const Case& test_case, bool verbose) {
  Result result;
  result.reason = reason_to_skip(test_case);
  if (!result.reason.empty()) {
    result.outcome = Outcome::SKIPPED;
    return result;
  }
  const std::string actual = printer_of(test_case)->run(test_case);
  std::vector<std::string> expected = folded_lines(test_case.expected);
  if (test_case.has_option("--event:time")) drop_event_times(expected);
  result.difference = difference_of(expected, folded_lines(actual), verbose);
  if (result.difference.empty()) return result;
  result.reason = allowed_reason(test_case);
  result.outcome = result.reason.empty() ? Outcome::FAILED : Outcome::ALLOWED;
  return result;
}

const char* outcome_name(Outcome outcome) {
  constexpr const char* kNames[] = {"passed", "failed", "allowed", "skipped"};
  return kNames[static_cast<int>(outcome)];
}

void print_result(const Case& test_case, const Result& result, bool verbose) {
  if (result.outcome == Outcome::PASSED && !verbose) return;
  if (result.outcome == Outcome::SKIPPED && !verbose) return;
  std::string options;
  for (const std::string& option : test_case.options) options += " " + option;
  std::printf("%s: %s (%s %s)%s%s%s\n%s", outcome_name(result.outcome), test_case.test.c_str(),
              test_case.tool.c_str(), test_case.decoder.c_str(), options.c_str(),
              result.reason.empty() ? "" : ": ", result.reason.c_str(), result.difference.c_str());
}

nlohmann::json to_json(const Case& test_case, const Result& result) {
  std::string options;
  for (const std::string& option : test_case.options) options += (options.empty() ? "" : " ") + option;
  return {{"test", test_case.test},
          {"tool", test_case.tool},
          {"decoder", test_case.decoder},
          {"options", options},
          {"outcome", outcome_name(result.outcome)},
          {"reason", result.reason},
          {"difference", result.difference}};
}

int run(const Arguments& arguments) {
  const Manifest manifest = read_manifest(arguments.directory);
  if (!manifest.problem.empty()) {
    std::fprintf(stderr, "ptkit_golden: %s\n", manifest.problem.c_str());
    return 2;
  }
  unsigned counts[4] = {};
  nlohmann::json rows = nlohmann::json::array();
  for (const Case& test_case : manifest.cases) {
    if (test_case.test.find(arguments.only) == std::string::npos) continue;
    const Result result = run_case(test_case, arguments.verbose);
    ++counts[static_cast<int>(result.outcome)];
    if (arguments.json) {
      rows.push_back(to_json(test_case, result));
    } else {
      print_result(test_case, result, arguments.verbose);
    }
  }
  const unsigned failed = counts[static_cast<int>(Outcome::FAILED)];
  if (arguments.json) {
    std::printf("%s\n", nlohmann::json{{"rows", rows}}.dump(1).c_str());
  } else {
    std::printf("%u passed, %u failed, %u skipped, %u allowed\n", counts[0], failed, counts[3], counts[2]);
  }
  return failed == 0 ? 0 : 1;
}

bool parse(int argc, char** argv, Arguments& out) {
  for (int index = 1; index < argc; ++index) {
    const bool more = index + 1 < argc;
    if (std::strcmp(argv[index], "--dir") == 0 && more) {
      out.directory = argv[++index];
    } else if (std::strcmp(argv[index], "--only") == 0 && more) {
      out.only = argv[++index];
    } else if (std::strcmp(argv[index], "--verbose") == 0) {
      out.verbose = true;
    } else if (std::strcmp(argv[index], "--json") == 0) {
      out.json = true;
    } else {
      return false;
    }
  }
  return !out.directory.empty();
}

}  // namespace
}  // namespace ptkit::golden

int main(int argc, char** argv) {
  ptkit::golden::Arguments arguments;
  if (!ptkit::golden::parse(argc, argv, arguments)) {
    std::fprintf(stderr, "usage: ptkit_golden --dir DIR [--only SUBSTRING] [--verbose] [--json]\n");
    return 2;
  }
  return ptkit::golden::run(arguments);
}
