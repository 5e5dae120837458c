#include "code/source/pdb/tables.h"

#include <algorithm>
#include <utility>

#include "code/source/budget.h"
#include "code/source/near_row.h"
#include "code/source/pdb/inlined_calls.h"
#include "code/source/pdb/lines.h"
#include "code/source/pdb/module_files.h"
#include "code/source/pdb/type_names.h"
#include "trace/warning_codes.h"

namespace ptkit::code::pdb {
namespace {

class TablesReader {
 public:
  TablesReader(const MsfFile& file, const DebugStreams& streams, const std::string& path,
               std::uint64_t most_bytes)
      : file_(file),
        streams_(streams),
        path_(path),
        memory_(most_bytes),
        paths_(file, streams, tables_.texts, memory_) {}

  Tables read() {
    if (read_lines()) read_inlined_calls();
    unite_lines(tables_);
    return std::move(tables_);
  }

 private:
  bool read_lines() {
    LineReader reader(streams_.sections, memory_);
    std::string problem =
        for_each_module([&](const Stream& stream, const Module& /*module*/, const ModuleFiles& files) {
          return reader.add(stream, files);
        });
    if (memory_.is_spent()) problem = "it has more lines than a file of its size should";
    if (problem.empty()) tables_.lines = reader.rows();
    return !report("source lines", problem);
  }

  void read_inlined_calls() {
    TypeNames names(file_, tables_.texts, memory_);
    InlineReader reader(tables_, streams_.sections, names, memory_);
    std::string problem =
        for_each_module([&](const Stream& stream, const Module& module, const ModuleFiles& files) {
          return reader.add(stream, module, files);
        });
    if (memory_.is_spent()) problem = "it has more inlined calls than a file of its size should";
    if (report("inlined functions", problem)) {
      tables_.sites.clear();
      tables_.site_rows.clear();
      tables_.site_spans = {};
      tables_.is_cut = false;
    } else if (!tables_.sites.empty()) {
      report("names of inlined functions", names.problem());
    }
    tables_.site_spans.finish();
  }

  // The problem of the first module that has one.
  template <typename Add>
  std::string for_each_module(const Add& add) {
    std::string problem = streams_.problem;
    for (const Module& module : streams_.modules) {
      if (!problem.empty() || memory_.is_spent()) break;
      const Stream stream = file_.stream(module.stream, problem);
      const ModuleFiles files(stream, module, paths_);
      if (problem.empty()) problem = files.problem();
      if (problem.empty()) problem = add(stream, module, files);
    }
    return problem;
  }

  // Whether there is a problem, which keeps a part from being used.
  bool report(const std::string& part, const std::string& problem) {
    if (problem.empty()) return false;
    tables_.problems.push_back(trace::warn(trace::WarningCode::PDB_PART_UNREADABLE, path_, part, problem));
    return true;
  }

  const MsfFile& file_;
  const DebugStreams& streams_;
  const std::string& path_;
  code::source::Budget memory_;
  Tables tables_;
  Paths paths_;
};

}  // namespace

Tables read_tables(const MsfFile& file, const DebugStreams& streams, const std::string& path,
                   std::uint64_t most_bytes) {
  return TablesReader(file, streams, path, most_bytes).read();
}

Row row_at(std::span<const Row> rows, std::uint64_t address) noexcept {
  const std::size_t found = code::source::near_row(rows, address, rows.size());
  return found == rows.size() ? Row{} : rows[found];
}

void add_row(std::vector<Row>& rows, const Row& row) {
  if (!rows.empty() && rows.back().address == row.address) rows.pop_back();
  if (rows.empty() || rows.back().file != row.file || rows.back().line != row.line) rows.push_back(row);
}

void add_rows(std::vector<Row>& rows, std::span<const Row> from, std::uint32_t begin, std::uint32_t end) {
  if (begin >= end) return;
  const Row first = row_at(from, begin);
  add_row(rows, {begin, first.file, first.line});
  auto next = std::ranges::upper_bound(from, begin, {}, &Row::address);
  for (; next != from.end() && next->address < end; ++next) add_row(rows, *next);
  add_row(rows, {end, code::source::kNone, 0});
}

}  // namespace ptkit::code::pdb
