#include "code/source/pdb/tables.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "code/source/budget.h"
#include "code/source/pdb/dump/checksums.h"
#include "code/source/pdb/dump/id_names.h"
#include "code/source/pdb/dump/inline_reader.h"
#include "code/source/pdb/dump/line_reader.h"
#include "code/source/pdb/inlined_calls.h"
#include "trace/warning_codes.h"

namespace ptkit::code::pdb {
namespace {

constexpr std::string_view kTooMuch = "it has more than a file of its size should";

class TablesReader {
 public:
  TablesReader(const Tool& tool, const std::string& path)
      : tool_(tool), path_(path), memory_(kMostOfFile * tool.file().size()) {}

  Tables read() {
    if (read_lines()) read_inlined_calls();
    unite_lines(tables_);
    return std::move(tables_);
  }

 private:
  static constexpr std::uint64_t kMostOfFile = 8;  // the memory of all tables

  bool read_lines() {
    LineReader reader(tables_.texts, memory_);
    std::string problem = tool_.run({"dump", "--section-headers", "-l"},
                                    [&](std::string_view text) { return reader.take(text); });
    if (problem.empty()) problem = reader.problem();
    if (problem.empty()) tables_.lines = reader.rows();
    return !report("source lines", problem);
  }

  void read_inlined_calls() {
    InlineReader reader(tables_.texts, memory_);
    std::string problem = tool_.run({"dump", "--section-headers", "--symbols", "--il", "--ids"},
                                    [&](std::string_view text) { return reader.take(text); });
    if (problem.empty()) problem = reader.problem();
    if (report("inlined functions", problem)) return;
    ChecksumReader files(tables_.texts, memory_);
    if (reader.has_files) read_files(files);
    const auto classes = read_classes(reader);
    add_inlined_calls(
        tables_, reader, [&](std::uint32_t module, std::uint32_t place) { return files.path(module, place); },
        classes);
  }

  void read_files(ChecksumReader& files) {
    std::string problem = tool_.run({"pdb2yaml", "--modules", "--subsections=fc"},
                                    [&](std::string_view text) { return files.take(text); });
    if (problem.empty() && memory_.is_spent()) problem = kTooMuch;
    report("files of inlined functions", problem);
  }

  // The types are named to llvm-pdbutil, as it writes all members of all types otherwise. It crashes on a
  // type that the PDB lacks: names are without classes then.
  std::unordered_map<std::uint32_t, std::uint32_t> read_classes(const InlineReader& inlined) {
    constexpr std::size_t kMostOfRun = 20'000;  // arguments of a process
    std::vector<std::uint32_t> types;
    for (const ReadSite& site : inlined.sites) types.push_back(inlined.ids.class_of(site.inlinee));
    std::ranges::sort(types);
    types.erase(std::unique(types.begin(), types.end()), types.end());
    if (!types.empty() && types.front() == 0) types.erase(types.begin());
    ClassReader classes(tables_.texts, memory_);
    std::string problem;
    for (std::size_t at = 0; at < types.size() && problem.empty(); at += kMostOfRun) {
      std::vector<std::string> arguments{"dump", "--types"};
      for (std::size_t i = at; i < std::min(types.size(), at + kMostOfRun); ++i)
        arguments.push_back(argument_of(types[i]));
      problem = tool_.run(arguments, [&](std::string_view text) { return classes.take(text); });
    }
    if (problem.empty() && memory_.is_spent()) problem = kTooMuch;
    report("classes of inlined functions", problem);
    return std::move(classes.names);
  }

  static std::string argument_of(std::uint32_t type) {
    constexpr int kHexadecimal = 16;
    std::array<char, 8> digits{};
    const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), type, kHexadecimal).ptr;
    return "--type-index=0x" + std::string(digits.data(), end);
  }

  // Whether there is a problem, which keeps a part from being used.
  bool report(const std::string& part, const std::string& problem) {
    if (problem.empty()) return false;
    tables_.problems.push_back(trace::warn(trace::WarningCode::PDB_PART_UNREADABLE, path_, part, problem));
    return true;
  }

  const Tool& tool_;
  const std::string& path_;
  code::source::Budget memory_;
  Tables tables_;
};

}  // namespace

Tables read_tables(const Tool& tool, const std::string& path) { return TablesReader(tool, path).read(); }

}  // namespace ptkit::code::pdb
