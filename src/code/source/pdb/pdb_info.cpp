#include "code/source/pdb/pdb_info.h"

#include <algorithm>
#include <span>

#include "code/source/near_row.h"

namespace ptkit::code::pdb {
namespace {

using code::source::InlinedCall;
using code::source::InlinedSpan;
using code::source::kNone;

class RowCursor final : public code::source::LineCursor {
 public:
  RowCursor(const Tables& tables, std::uint64_t linked_at) : tables_(tables), linked_at_(linked_at) {}

  [[nodiscard]] code::source::SourceLine at(std::uint64_t address) override {
    const std::span<const Row> rows(tables_.all_lines);
    const std::size_t row = code::source::near_row(rows, address - linked_at_, row_);
    if (row == rows.size()) return {};
    row_ = row;
    return {tables_.texts.text(rows[row].file), rows[row].line};
  }

 private:
  const Tables& tables_;
  std::uint64_t linked_at_;
  std::size_t row_ = 0;
};

}  // namespace

std::unique_ptr<code::source::LineCursor> PdbInfo::line_cursor() const {
  return std::make_unique<RowCursor>(*tables_, linked_at_);
}

std::vector<code::source::Frame> PdbInfo::frames_at(std::uint64_t address) const {
  const std::uint64_t rva = address - linked_at_;
  const auto line_of = [&](const Row& row) {
    return code::source::SourceLine{tables_->texts.text(row.file), row.line};
  };
  std::vector<code::source::Frame> frames;
  for (std::uint32_t number = tables_->site_spans.at(rva); number != kNone;) {
    const Site& site = tables_->sites[number];
    frames.push_back({tables_->texts.text(site.name), line_of(row_at(tables_->rows_of(site), rva))});
    number = site.caller;
  }
  const Row row = row_at(tables_->lines, rva);
  if (row.file != kNone || !frames.empty()) frames.push_back({{}, line_of(row)});
  return frames;
}

InlinedSpan PdbInfo::inlined_at(std::uint64_t address) const {
  const code::source::Spans::Span span = tables_->site_spans.span_at(address - linked_at_);
  const std::uint64_t last = std::min(span.last, UINT64_MAX - linked_at_);
  return {span.first + linked_at_, last + linked_at_, span.value == kNone ? InlinedCall::kNone : span.value};
}

InlinedCall PdbInfo::inlined_call(std::uint32_t number) const {
  constexpr unsigned kHalf = 32;
  const Site& site = tables_->sites[number];
  InlinedCall call;
  if (site.caller != kNone) call.caller = site.caller;
  call.level = site.level;
  call.function = std::uint64_t{site.name} << kHalf | site.declared_line;
  return call;
}

// Compilers order the rows of a call by address: the first one is where it begins.
bool PdbInfo::begins_call(std::uint32_t number, std::uint64_t address) const {
  const std::span<const Row> rows = tables_->rows_of(tables_->sites[number]);
  if (rows.empty()) return true;
  const Row at = row_at(rows, address - linked_at_);
  return at.file == rows.front().file && at.line == rows.front().line;
}

}  // namespace ptkit::code::pdb
