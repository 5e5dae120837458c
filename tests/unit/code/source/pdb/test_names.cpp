// Names of functions in PDBs.
#include <gtest/gtest.h>

#include <array>

#include "code/source/pdb/names.h"
#include "code/source/pdb/pdb_file.h"
#include "trace/warning_codes.h"
#include "unit/support/makers/pdb_maker.h"

namespace ptkit::code::pdb::test {
namespace {

constexpr std::uint64_t kMuch = 1 << 20U;

struct Read {
  std::vector<trace::SymbolEntry> symbols;
  std::string problem;
};

Read read(const std::vector<std::uint8_t>& bytes, std::uint64_t most = kMuch) {
  const MsfFile file(bytes);
  Read found;
  code::source::Budget memory(most);
  found.symbols = read_names(file, read_debug_streams(file), memory, found.problem);
  return found;
}

std::string listed(const PdbMaker& maker) {
  const Read found = read(maker.file());
  EXPECT_EQ(found.problem, "");
  std::string names;
  for (const trace::SymbolEntry& one : found.symbols)
    names += one.name + " " + std::to_string(one.file_offset) + "+" + std::to_string(one.size) + "\n";
  return names;
}

PdbMaker with(const Symbols& symbols, std::vector<std::vector<std::uint8_t>> publics = {}) {
  PdbMaker maker;
  maker.modules.push_back({symbols.bytes(), {}});
  maker.publics = std::move(publics);
  return maker;
}

TEST(PdbNames, ProceduresHaveSizesAndPublicsFillIn) {
  constexpr std::uint16_t kLocalId = 0x1146;
  Symbols symbols;
  symbols.procedure("start", 1, 0, 43);
  symbols.procedure("work", 1, 48, 16, kLocalId);
  EXPECT_EQ(listed(with(symbols, {public_symbol("start", 1, 0), public_symbol("stub", 1, 64)})),
            "start 4096+43\nwork 4144+16\nstub 4160+0\n");
}

TEST(PdbNames, ProceduresHaveSixKinds) {
  Symbols symbols;
  constexpr std::array<std::uint16_t, 7> kKinds = {0x110f, 0x1110, 0x1146, 0x1147, 0x1155, 0x1156, 0x1111};
  for (std::uint32_t at = 0; at < kKinds.size(); ++at)
    symbols.procedure("f" + std::to_string(at), 1, at, 1, kKinds[at]);
  EXPECT_EQ(listed(with(symbols)), "f0 4096+1\nf1 4097+1\nf2 4098+1\nf3 4099+1\nf4 4100+1\nf5 4101+1\n");
}

TEST(PdbNames, AMangledNameIsShownWithItsProceduresSize) {
  Symbols symbols;
  symbols.procedure("ns::g", 1, 16, 8);
  symbols.procedure("h", 1, 32, 9);
  EXPECT_EQ(listed(with(symbols, {public_symbol("_ZN2ns1gEi", 1, 16), public_symbol("?h@@YAXXZ", 1, 32)})),
            "_ZN2ns1gEi 4112+8\nns::g 4112+8\nh 4128+9\n?h@@YAXXZ 4128+9\n");
}

TEST(PdbNames, NamesOf32BitCodeHaveNoDecoration) {
  Symbols symbols;
  symbols.procedure("g", 1, 8, 4);
  PdbMaker maker = with(symbols, {public_symbol("_f@8", 1, 0), public_symbol("_g", 1, 8)});
  maker.is_32_bit = true;
  EXPECT_EQ(listed(maker), "f 4096+0\ng 4104+4\n");
}

TEST(PdbNames, OnlyCodeHasNames) {
  Symbols symbols;
  symbols.procedure("beyond", 1, 9999, 4);
  symbols.procedure("none", 0, 0, 4);
  symbols.add(record(0x110c, Fields().u32(0x74).u32(4).u16(1).text("value")));
  EXPECT_EQ(listed(with(symbols, {public_symbol("data", 1, 0, 0), public_symbol("table", 2, 0),
                                  public_symbol("far", 9, 0)})),
            "");
}

TEST(PdbNames, ThunksAndNamesWithBackquotes) {
  Symbols symbols;
  symbols.procedure("`anonymous namespace'::f", 1, 0, 4);
  symbols.add(record(0x1102, Fields().u32(0).u32(4).u32(0).u32(16).u16(1).u16(6).u8(0).text("jump")));
  EXPECT_EQ(listed(with(symbols)), "`anonymous namespace'::f 4096+4\njump 4112+6\n");
}

TEST(PdbNames, NamesMayBeAsLongAsARecord) {
  const std::string name(60000, 'n');
  Symbols symbols;
  symbols.procedure(name, 1, 0, 4);
  EXPECT_EQ(listed(with(symbols)), name + " 4096+4\n");
}

TEST(PdbNames, DamageIsAProblemWithItsOffset) {
  Symbols cut;
  cut.add(Fields().u16(60000).u16(kGlobalProcedure).u32(0).bytes);
  EXPECT_EQ(read(with(cut).file()).problem, "stream 10 is damaged at offset 4: a symbol is cut");
  Symbols shallow;
  shallow.add(record(kGlobalProcedure, Fields().u32(0).u32(0)));
  EXPECT_EQ(read(with(shallow).file()).problem, "stream 10 is damaged at offset 4: a function is cut");
  Symbols endless;
  endless.add(record(kGlobalProcedure, Fields().put(0, 35).put(0x6161616161, 5)));
  EXPECT_EQ(read(with(endless).file()).problem, "stream 10 is damaged at offset 4: a function is cut");
  PdbMaker old = with(Symbols());
  old.modules[0].symbols[0] = 2;
  EXPECT_EQ(read(old.file()).problem,
            "stream 10 is damaged at offset 0: its symbols have an older form, or none");
  EXPECT_EQ(read(with({}, {record(0x110e, Fields().u32(2))}).file()).problem,
            "stream 7 is damaged at offset 0: a public symbol is cut");
  auto streams = with({}, {public_symbol("f", 1, 0)}).streams();
  streams[PdbMaker::RECORDS].clear();
  EXPECT_EQ(read(PdbMaker::msf_of(streams)).problem,
            "stream 6 is damaged at offset 40: it names no public symbol");
}

TEST(PdbNames, SectionsAndDebugInformationAreNeeded) {
  auto streams = with(Symbols()).streams();
  streams[PdbMaker::SECTIONS].clear();
  EXPECT_EQ(read(PdbMaker::msf_of(streams)).problem, "it has no headers of sections");
  streams[PdbMaker::DEBUG].clear();
  EXPECT_EQ(read(PdbMaker::msf_of(streams)).problem, "it has no debug information (stream 3, DBI)");
}

TEST(PdbNames, RearrangedCodeHasNone) {
  PdbMaker maker = with(Symbols());
  maker.is_rearranged = true;
  EXPECT_EQ(read(maker.file()).problem,
            "its addresses are those of code that was rearranged afterwards (OMAP)");
}

TEST(PdbNames, MemoryIsBounded) {
  Symbols symbols;
  for (int i = 0; i < 100; ++i) symbols.procedure("name", 1, 0, 4);
  const Read found = read(with(symbols).file(), 500);
  EXPECT_EQ(found.problem, "it has more names than a file of its size should");
  EXPECT_TRUE(found.symbols.empty());
}

// The record of one public symbol is read for each of its offsets.
TEST(PdbNames, ReadingsOfARecordAreBounded) {
  constexpr std::size_t kOffsets = 10000;
  auto streams = with({}, {public_symbol(std::string(60000, 'n'), 2, 0)}).streams();
  Fields index;
  index.u32(0).u32(kOffsets * 4).put(0, 20).put(0, kOffsets * 4);
  streams[PdbMaker::PUBLICS] = index.bytes;
  EXPECT_EQ(read(PdbMaker::msf_of(streams)).problem, "it has more names than a file of its size should");
}

std::string id_of(const std::vector<std::uint8_t>& bytes) {
  const PdbFile file("a.pdb", trace::TraceBuffer::from_vector(bytes));
  const auto id = file.id();
  EXPECT_EQ(id->id.empty(), id->problem.has_value());
  if (!id->problem) return id->id;
  EXPECT_EQ(id->problem->code, trace::WarningCode::PDB_UNREADABLE);
  EXPECT_EQ(file.names()->problem, id->problem);
  EXPECT_EQ(file.tables()->problems, std::vector{*id->problem});
  return id->problem->arguments.at(1);
}

TEST(PdbId, GuidAndAge) {
  EXPECT_EQ(pdb_id("3F2504E04F8911D39A0C0305E82C3301", 26), "3f2504e04f8911d39a0c0305e82c3301-1a");
  EXPECT_EQ(pdb_id("3F2504E0", 26), "");
  EXPECT_EQ(pdb_id("3F2504E04F8911D39A0C0305E82C33xx", 1), "");
  EXPECT_TRUE(is_pdb_id("3f2504e04f8911d39a0c0305e82c3301-1a"));
  EXPECT_FALSE(is_pdb_id("3f2504e04f8911d39a0c0305e82c3301"));
  EXPECT_FALSE(is_pdb_id("3f2504e04f8911d39a0c0305e82c3301-"));
}

TEST(PdbId, TheAgeIsThatOfTheDebugInformation) {
  PdbMaker maker;
  maker.age = 26;
  EXPECT_EQ(id_of(maker.file()), "33221100554477668899aabbccddeeff-1a");
  auto streams = maker.streams();
  streams[PdbMaker::DEBUG].clear();
  EXPECT_EQ(id_of(PdbMaker::msf_of(streams)), "33221100554477668899aabbccddeeff-21");
}

TEST(PdbId, DamageIsAProblem) {
  auto streams = PdbMaker().streams();
  streams[PdbMaker::DEBUG].resize(63);
  EXPECT_EQ(id_of(PdbMaker::msf_of(streams)),
            "stream 3 is damaged at offset 0: it has no header of this kind");
  streams = PdbMaker().streams();
  streams[PdbMaker::INFO].resize(27);
  EXPECT_EQ(id_of(PdbMaker::msf_of(streams)), "stream 1 is damaged at offset 0: it has no GUID");
}

}  // namespace
}  // namespace ptkit::code::pdb::test
