// What is read of llvm-pdbutil's text: names, lines and inlined calls, from any text, at any address.
#include <cstdlib>
#include <utility>

#include "code/source/pdb/dump/checksums.h"
#include "code/source/pdb/dump/dump_reader.h"
#include "code/source/pdb/dump/line_reader.h"
#include "code/source/pdb/inlined_calls.h"
#include "code/source/pdb/names.h"
#include "code/source/pdb/pdb_info.h"

namespace {

using namespace ptkit;

constexpr std::uint64_t kMemory = 1 << 20U;

bool ascend(const std::vector<code::pdb::Row>& rows) {
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].address <= rows[i - 1].address) return false;
  }
  return true;
}

void look_up(const code::pdb::PdbInfo& info, std::uint64_t address) {
  const auto frames = info.frames_at(address);
  if (frames.size() > code::source::kMostLevels + 1) std::abort();
  const code::source::SourceLine line = info.line_cursor()->at(address);
  if (!frames.empty() && !frames.front().at.file.empty() && frames.front().at.line != line.line) std::abort();
  const code::source::InlinedSpan span = info.inlined_at(address);
  if (span.first > address || span.last < address) std::abort();
  if (span.call == code::source::InlinedCall::kNone) return;
  const code::source::InlinedCall call = info.inlined_call(span.call);
  if (call.level + 1 != frames.size()) std::abort();
  static_cast<void>(info.begins_call(span.call, address));
}

code::pdb::Tables tables_in(std::string_view text) {
  code::pdb::Tables tables;
  code::source::Budget memory(kMemory);
  code::pdb::LineReader lines(tables.texts, memory);
  static_cast<void>(lines.take(text));
  if (lines.problem().empty()) tables.lines = lines.rows();
  code::pdb::InlineReader inlines(tables.texts, memory);
  static_cast<void>(inlines.take(text));
  code::pdb::ChecksumReader files(tables.texts, memory);
  static_cast<void>(files.take(text));
  code::pdb::ClassReader classes(tables.texts, memory);
  static_cast<void>(classes.take(text));
  if (inlines.problem().empty()) {
    code::pdb::add_inlined_calls(
        tables, inlines, [&](std::uint32_t module, std::uint32_t place) { return files.path(module, place); },
        classes.names);
  }
  code::pdb::unite_lines(tables);
  return tables;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  code::pdb::DumpReader names(kMemory);
  static_cast<void>(names.take(text));
  if (names.problem().empty()) static_cast<void>(code::pdb::names_in(std::move(names), true));
  const auto tables = std::make_shared<const code::pdb::Tables>(tables_in(text));
  if (!ascend(tables->lines) || !ascend(tables->all_lines)) std::abort();
  constexpr std::uint64_t kPlaces = 256;
  const code::pdb::PdbInfo info(tables, 0);
  for (std::uint64_t place = 0; place < kPlaces; ++place) look_up(info, 0x1000 + place);
  for (const auto& span : tables->site_spans.all()) {
    look_up(info, span.first);
    look_up(info, span.last);
  }
  for (const std::uint64_t far : {std::uint64_t{0}, std::uint64_t{UINT32_MAX}, ~std::uint64_t{0}})
    look_up(info, far);
  return 0;
}
