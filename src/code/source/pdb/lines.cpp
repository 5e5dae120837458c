#include "code/source/pdb/lines.h"

#include <algorithm>

namespace ptkit::code::pdb {
namespace {

// Code over which debuggers step, and code into which they step always, has these lines.
constexpr std::uint32_t kNeverStepInto = 0xf00f00;
constexpr std::uint32_t kAlwaysStepInto = 0xfeefee;

}  // namespace

std::string LineReader::add(const Stream& stream, const ModuleFiles& files) {
  for (const Subsection& part : files.subsections()) {
    if (part.kind == Subsection::kLines && !add_part(Cursor(stream, part.begin, part.end), files))
      return damage_at(stream.number(), part.begin, "lines of a function are cut");
  }
  return {};
}

// offset, section, flags, bytes of code; then for each file: its offset in the checksums, number of lines,
// bytes, and of each line its offset in the code and its number
bool LineReader::add_part(Cursor part, const ModuleFiles& files) {
  constexpr std::uint32_t kHeadBytes = 12;
  constexpr std::uint32_t kLineBytes = 8;
  constexpr std::uint32_t kLineBits = 0xffffff;
  Contribution next;
  next.begin = part.u32();
  next.section = part.u16();
  part.skip(sizeof(std::uint16_t));
  const std::uint32_t size = part.u32();
  if (!part.good() || size > UINT32_MAX - next.begin) return false;
  next.end = next.begin + size;
  while (part.left() != 0 && !memory_.is_spent()) {
    const std::uint32_t path = files.path(part.u32());
    const std::uint32_t count = part.u32();
    const std::uint32_t bytes = part.u32();
    const std::uint64_t line_bytes = std::uint64_t{count} * kLineBytes;
    if (!part.good() || bytes < kHeadBytes + line_bytes || bytes - kHeadBytes > part.left()) return false;
    for (std::uint32_t i = 0; i < count; ++i) {
      const std::uint32_t offset = std::min(part.u32(), size);
      Row row{next.begin + offset, path, part.u32() & kLineBits};
      if (row.line == kNeverStepInto || row.line == kAlwaysStepInto) row.line = 0;
      if (i == 0) begin_file(next, row.address);
      if (!memory_.take(sizeof(Row))) return true;
      rows_.push_back(row);
      contributions_.back().end_row = rows_.size();
    }
    part.skip(bytes - kHeadBytes - line_bytes);  // columns
  }
  return true;
}

// Lines of one contribution in several files follow each other; where a function begins, it has one line.
void LineReader::begin_file(Contribution next, std::uint32_t first) {
  if (!contributions_.empty()) {
    const Contribution& last = contributions_.back();
    const auto is_begin = [&](const Row& row) { return row.address == last.begin; };
    const bool is_same = last.section == next.section && last.begin == next.begin && last.end == next.end;
    if (is_same && (first != last.begin || std::ranges::none_of(rows_of(last), is_begin))) return;
  }
  if (!memory_.take(sizeof(Contribution))) return;
  next.first_row = next.end_row = rows_.size();
  contributions_.push_back(next);
}

std::vector<Row> LineReader::rows() {
  struct Linked {
    std::uint32_t address = 0;
    Contribution* contribution = nullptr;
  };
  std::vector<Linked> linked;
  for (Contribution& one : contributions_) {
    const auto address = sections_.code_address(one.section, one.begin);
    if (!address || one.end - one.begin > UINT32_MAX - *address) continue;
    std::ranges::stable_sort(rows_of(one), {}, &Row::address);
    linked.push_back({*address, &one});
  }
  std::ranges::stable_sort(linked, {}, &Linked::address);
  std::vector<Row> rows;
  std::vector<Row> own;
  std::uint32_t reached = 0;
  for (const auto& [address, one] : linked) {
    const std::uint32_t begin = one->begin;
    const std::span<const Row> read = rows_of(*one);
    own.clear();
    for (std::size_t i = 0; i < read.size(); ++i) {
      const Row& row = read[i];
      if (row.address < begin || row.address >= one->end) continue;
      const bool is_next = i != 0 && read[i - 1].address == row.address;
      const std::uint32_t at = own.empty() ? address : row.address - begin + address + (is_next ? 1 : 0);
      add_row(own, {at, row.file, row.line});
    }
    const std::uint32_t end = address + (one->end - begin);
    add_rows(rows, own, std::max(address, reached), end);
    reached = std::max(reached, end);
  }
  rows.shrink_to_fit();
  return rows;
}

}  // namespace ptkit::code::pdb
