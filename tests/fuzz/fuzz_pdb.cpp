// Names, lines and inlined calls of any file that begins as a PDB, or of a PDB with the input as its streams:
// of each its number, its bytes (16 bits), and these.
#include <cstdlib>
#include <utility>

#include "code/source/pdb/names.h"
#include "code/source/pdb/pdb_info.h"
#include "unit/support/makers/pdb_maker.h"

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

// Streams that the input lacks are those of an empty PDB with two modules.
std::vector<std::uint8_t> file_of(base::Bytes input) {
  constexpr std::size_t kHead = 3;
  code::pdb::test::PdbMaker maker;
  maker.modules.resize(2);
  auto streams = maker.streams();
  while (input.size() >= kHead) {
    const std::size_t number = input[0] % streams.size();
    const std::size_t size = std::min<std::size_t>(base::load_le<2>(&input[1]), input.size() - kHead);
    const base::Bytes bytes = input.subspan(kHead, size);
    streams[number].assign(bytes.begin(), bytes.end());
    // The debug information has the sizes of modules: both have symbols alone, or lines alone.
    if (number >= code::pdb::test::PdbMaker::MODULES) {
      const std::size_t index = number - code::pdb::test::PdbMaker::MODULES;
      auto& module = maker.modules[index];
      const std::size_t symbols = std::min<std::size_t>(size, size < 2 ? 0 : base::load_le<2>(bytes.data()));
      module.symbols.assign(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(symbols));
      module.parts.assign(bytes.begin() + static_cast<std::ptrdiff_t>(symbols), bytes.end());
      module.symbols.resize(std::max<std::size_t>(4, module.symbols.size()));
      for (std::size_t i = 0; i < 4; ++i) module.symbols[i] = i == 0 ? 4 : 0;
      const auto made = maker.streams();
      streams[code::pdb::test::PdbMaker::DEBUG] = made[code::pdb::test::PdbMaker::DEBUG];
      streams[number] = made[number];
    }
    input = input.subspan(kHead + size);
  }
  return code::pdb::test::PdbMaker::msf_of(streams);
}

void read(base::Bytes bytes) {
  const code::pdb::MsfFile file(bytes);
  const code::pdb::DebugStreams streams = code::pdb::read_debug_streams(file);
  code::source::Budget memory(kMemory);
  std::string problem;
  const auto names = code::pdb::read_names(file, streams, memory, problem);
  if (!problem.empty() && !names.empty()) std::abort();
  const auto tables =
      std::make_shared<const code::pdb::Tables>(code::pdb::read_tables(file, streams, "a.pdb", kMemory));
  if (!ascend(tables->lines) || !ascend(tables->all_lines)) std::abort();
  constexpr std::uint64_t kAddresses = 256;
  const code::pdb::PdbInfo info(tables, 0);
  for (std::uint64_t offset = 0; offset < kAddresses; ++offset) look_up(info, 0x1000 + offset);
  for (const auto& span : tables->site_spans.all()) {
    look_up(info, span.first);
    look_up(info, span.last);
  }
  for (const std::uint64_t far : {std::uint64_t{0}, std::uint64_t{UINT32_MAX}, ~std::uint64_t{0}})
    look_up(info, far);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const base::Bytes input(data, size);
  if (code::pdb::is_pdb(input)) {
    read(input);
  } else {
    read(file_of(input));
  }
  return 0;
}
