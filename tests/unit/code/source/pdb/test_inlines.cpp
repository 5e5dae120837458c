// Inlined calls in PDBs.
#include <gtest/gtest.h>

#include "code/source/pdb/pdb_info.h"
#include "code/source/pdb/type_names.h"
#include "trace/warning_codes.h"
#include "unit/support/makers/pdb_maker.h"

namespace ptkit::code::pdb::test {
namespace {

constexpr std::uint64_t kMuch = 1 << 20U;
constexpr std::uint64_t kLinked = 0x140000000;
constexpr std::uint16_t kInlineSite2 = 0x115d;

// Lines of `start`, in which `mid` is inlined, and `get` in that.
class InlinesMaker {
 public:
  PdbMaker pdb;
  Fields checksums;
  std::uint32_t source = pdb.file(checksums, "/src/a.c", 16);
  std::uint32_t header = pdb.file(checksums, "/src/a.h");
  std::uint32_t part = pdb.file(checksums, "C:\\src\\part \"1\".inc");
  std::uint32_t main = pdb.file(checksums, "/src/main.c", 16);
  bool has_files = false;

  InlinesMaker() {
    pdb.ids = {record(0x1601, Fields().u32(0x1003).u32(0x1001).text("mid")),
               record(0x1602, Fields().u32(0x1002).u32(0x1003).text("get")),
               record(0x1601, Fields().u32(0).u32(0x1001).text("odd, type = name")),
               record(0x1605, Fields().u32(0).text("ns"))};
    pdb.types = {
        record(0x1002, Fields().u32(0x74).u32(0)), record(0x1201, Fields().u32(0)),
        record(0x1505, Fields().u16(1).u16(0).put(0, 12).u16(4).text("Box<int>").text("_ZTS3BoxIiE"))};
  }

  [[nodiscard]] std::vector<std::uint8_t> outer() const {
    return {0x0b, 0x24, 0x05, static_cast<std::uint8_t>(part), 0x0b, 0x28, 0x04, 0x10};
  }
  [[nodiscard]] static std::vector<std::uint8_t> inner() { return {0x03, 0x08, 0x04, 0x04, 0x00, 0x00}; }
  static void begin(Symbols& symbols) {
    symbols.begin_procedure("start", 1, 0x10, 0x40);
    symbols.add(record(0x1103, Fields().put(0, 18).text("")));  // a block
  }
  [[nodiscard]] Symbols symbols(std::uint16_t kind = kInlineSite) const {
    Symbols made;
    begin(made);
    made.begin_site(0x1000, outer(), kind);
    made.begin_site(0x1001, inner(), kind);
    made.add(record(0x113e, Fields().u32(0x74).u16(1).text("x")));
    for (int i = 0; i < 3; ++i) made.end();
    return made;
  }
  [[nodiscard]] PdbMaker with(const std::vector<Symbols>& modules) const {
    PdbMaker maker = pdb;
    Fields inlinees;
    inlinees.u32(has_files ? 1 : 0).u32(0x1000).u32(source).u32(30);
    if (has_files) inlinees.u32(2).u32(part).u32(header);
    inlinees.u32(0x1001).u32(header).u32(10);
    if (has_files) inlinees.u32(0);
    for (const Symbols& one : modules) {
      Fields parts;
      parts.add(subsection(0xf6, inlinees)).add(subsection(0xf4, checksums));
      if (maker.modules.empty())
        parts.add(lines_part(1, 0x10, 0x40, {{main, {{0x10, 50}, {0x14, 51}, {0x2c, 52}}}}));
      maker.modules.push_back({one.bytes(), parts.bytes});
    }
    return maker;
  }
};

std::shared_ptr<const Tables> tables_of(const PdbMaker& maker, bool is_whole = true) {
  const std::vector<std::uint8_t> bytes = maker.file();
  const MsfFile file(bytes);
  auto tables = std::make_shared<Tables>(read_tables(file, read_debug_streams(file), "a.pdb", kMuch));
  EXPECT_EQ(tables->problems.empty(), is_whole);
  return tables;
}

std::string at(const PdbInfo& info, std::uint64_t rva) {
  std::string text;
  for (const code::source::Frame& frame : info.frames_at(kLinked + rva))
    text += std::string(frame.function) + " " + std::string(frame.at.file) + ":" +
            std::to_string(frame.at.line) + "\n";
  return text;
}

std::string problem_of(const PdbMaker& maker, std::uint64_t most = kMuch) {
  const std::vector<std::uint8_t> bytes = maker.file();
  const MsfFile file(bytes);
  const Tables tables = read_tables(file, read_debug_streams(file), "a.pdb", most);
  if (tables.problems.empty()) return {};
  EXPECT_TRUE(tables.sites.empty());
  EXPECT_TRUE(tables.site_spans.empty());
  EXPECT_EQ(tables.problems.at(0).code, trace::WarningCode::PDB_PART_UNREADABLE);
  EXPECT_EQ(tables.problems.at(0).arguments.at(1), "inlined functions");
  return tables.problems.at(0).arguments.at(2);
}

void expect_chains(const PdbMaker& maker) {
  const PdbInfo info(tables_of(maker), kLinked);
  EXPECT_EQ(at(info, 0x1010), " /src/main.c:50\n");
  EXPECT_EQ(at(info, 0x1014), "ns::mid /src/a.c:31\n /src/main.c:51\n");
  EXPECT_EQ(at(info, 0x1018), "Box<int>::get /src/a.h:10\nns::mid /src/a.c:31\n /src/main.c:51\n");
  EXPECT_EQ(at(info, 0x101c), "ns::mid C:\\src\\part \"1\".inc:32\n /src/main.c:51\n");
  EXPECT_EQ(at(info, 0x102c), " /src/main.c:52\n");
  EXPECT_EQ(at(info, 0x1050), "");
}

TEST(PdbInlines, AChainHasTheLineOfEachCall) {
  InlinesMaker maker;
  expect_chains(maker.with({maker.symbols()}));
  maker.has_files = true;
  expect_chains(maker.with({maker.symbols()}));
}

TEST(PdbInlines, CallsOfProfiledBuildsAreRead) {
  const InlinesMaker maker;
  expect_chains(maker.with({maker.symbols(kInlineSite2)}));
}

TEST(PdbInlines, ALineIsThatOfTheInnermostCall) {
  const InlinesMaker maker;
  const PdbInfo info(tables_of(maker.with({maker.symbols()})), kLinked);
  const auto cursor = info.line_cursor();
  for (std::uint64_t rva = 0x1000; rva < 0x1060; ++rva) {
    const auto frames = info.frames_at(kLinked + rva);
    const code::source::SourceLine line = cursor->at(kLinked + rva);
    EXPECT_EQ(line.line, frames.empty() ? 0 : frames.front().at.line) << rva;
    EXPECT_EQ(line.file, frames.empty() ? std::string_view{} : frames.front().at.file) << rva;
  }
}

TEST(PdbInlines, CallsHaveCallersAndBegins) {
  const InlinesMaker maker;
  const PdbInfo info(tables_of(maker.with({maker.symbols()})), kLinked);
  const code::source::InlinedSpan none = info.inlined_at(kLinked + 0x1010);
  EXPECT_EQ(none.call, code::source::InlinedCall::kNone);
  EXPECT_EQ(none.last, kLinked + 0x1013);
  const code::source::InlinedSpan outer = info.inlined_at(kLinked + 0x1014);
  EXPECT_EQ(outer.first, kLinked + 0x1014);
  EXPECT_EQ(outer.last, kLinked + 0x1017);
  const code::source::InlinedSpan inner = info.inlined_at(kLinked + 0x1019);
  const code::source::InlinedCall call = info.inlined_call(inner.call);
  EXPECT_EQ(call.level, 2u);
  EXPECT_EQ(call.caller, outer.call);
  EXPECT_NE(call.function, info.inlined_call(outer.call).function);
  EXPECT_EQ(info.inlined_call(outer.call).caller, code::source::InlinedCall::kNone);
  EXPECT_TRUE(info.begins_call(outer.call, kLinked + 0x1014));
  EXPECT_TRUE(info.begins_call(outer.call, kLinked + 0x1018));
  EXPECT_FALSE(info.begins_call(outer.call, kLinked + 0x101c));
  EXPECT_FALSE(info.begins_call(outer.call, kLinked + 0x102c));
}

TEST(PdbInlines, OfFoldedFunctionsTheFirstOneCounts) {
  const InlinesMaker maker;
  Symbols other;
  InlinesMaker::begin(other);
  other.begin_site(0x1001, InlinesMaker::inner());
  other.end();
  other.end();
  const PdbInfo info(tables_of(maker.with({maker.symbols(), other})), kLinked);
  EXPECT_EQ(at(info, 0x1014), "ns::mid /src/a.c:31\n /src/main.c:51\n");
}

TEST(PdbInlines, CallsOfNoFunctionAreLeftOut) {
  const InlinesMaker maker;
  Symbols symbols;
  symbols.begin_site(0x1000, maker.outer());
  symbols.begin_site(0x1001, InlinesMaker::inner());
  symbols.end();
  symbols.end();
  EXPECT_EQ(tables_of(maker.with({symbols}))->sites.size(), 0u);
  Symbols data;
  data.begin_procedure("data", 2, 0, 0x40);
  data.begin_site(0x1000, maker.outer());
  data.end();
  data.end();
  EXPECT_EQ(tables_of(maker.with({data}))->sites.size(), 0u);
}

TEST(PdbInlines, CallsInTooManyOthersAreLeftOut) {
  const InlinesMaker maker;
  Symbols symbols;
  InlinesMaker::begin(symbols);
  for (int level = 0; level < 1000; ++level) symbols.begin_site(0x1000, {0x03, 0x04, 0x04, 0x04});
  for (int level = 0; level <= 1000; ++level) symbols.end();
  const auto tables = tables_of(maker.with({symbols}));
  EXPECT_EQ(tables->sites.size(), code::source::kMostLevels);
  EXPECT_TRUE(tables->is_cut);
  EXPECT_EQ(PdbInfo(tables, kLinked).frames_at(kLinked + 0x1014).size(), code::source::kMostLevels + 1);
}

TEST(PdbInlines, DamageIsAProblemWithItsOffset) {
  const InlinesMaker maker;
  const auto with_inner = [&](const std::vector<std::uint8_t>& annotations, std::int64_t more = 0) {
    Symbols symbols;
    InlinesMaker::begin(symbols);
    symbols.begin_site(0x1000, maker.outer());
    const std::uint32_t begin = symbols.size();
    symbols.begin_site(0x1001, annotations);
    symbols.end();
    const std::uint32_t end = symbols.size();
    if (more != 0) {
      symbols.begin_site(0x1001, annotations);
      symbols.set_end(static_cast<std::uint32_t>((more < 0 ? begin : end) + more));
    }
    symbols.end();
    symbols.end();
    if (more != 0) symbols.end();
    return maker.with({symbols});
  };
  const auto damage = [](std::uint32_t offset) {
    return "stream 10 is damaged at offset " + std::to_string(offset) +
           ": an inlined call is cut, or not in its caller";
  };
  EXPECT_EQ(problem_of(with_inner(InlinesMaker::inner())), "");
  EXPECT_EQ(problem_of(with_inner({0x0e, 0x01})), damage(100));
  EXPECT_EQ(problem_of(with_inner({0x03, 0xc0, 0x01, 0x02})), damage(100));
  Symbols cut;
  InlinesMaker::begin(cut);
  cut.add(record(kInlineSite, Fields().u32(0).u32(200)));
  EXPECT_EQ(problem_of(maker.with({cut})), damage(76));
  for (const std::uint32_t end : {76U, 77U, 4096U}) {
    Symbols beyond;
    InlinesMaker::begin(beyond);
    beyond.begin_site(0x1000, maker.outer());
    beyond.end();
    beyond.end();
    PdbMaker made = maker.with({beyond});
    Fields changed{made.modules[0].symbols};
    changed.set(84, end);
    made.modules[0].symbols = changed.bytes;
    EXPECT_EQ(problem_of(made), end == 77 ? "" : damage(76)) << end;
  }
  PdbMaker inlinees = maker.with({maker.symbols()});
  Fields parts{inlinees.modules[0].parts};
  parts.set(4, 27);
  inlinees.modules[0].parts = parts.bytes;
  EXPECT_NE(problem_of(inlinees).find(": lines of inlined functions are cut"), std::string::npos);
  EXPECT_EQ(problem_of(maker.with({maker.symbols()}), 500),
            "it has more inlined calls than a file of its size should");
}

TEST(PdbInlines, NamesAreKnownByTheirRecords) {
  InlinesMaker maker;
  maker.pdb.ids.push_back(record(0x1603, Fields().u16(0)));                                          // 0x1004
  maker.pdb.ids.push_back(record(0x1602, Fields().u32(0x1009).u32(0x1003).text("get")));             // 0x1005
  maker.pdb.ids.push_back(record(0x1601, Fields().u32(0x1007).u32(0x1001).text("f")));               // 0x1006
  maker.pdb.ids.push_back(record(0x1605, Fields().u32(0).text(std::string(5000, 's'))));             // 0x1007
  maker.pdb.ids.push_back(record(0x1602, Fields().u32(0x1003).u32(0x1003).text("in_union")));        // 0x1008
  maker.pdb.ids.push_back(record(0x1602, Fields().u32(0x1004).u32(0x1003).text("in_large_class")));  // 0x1009
  maker.pdb.ids.push_back(record(0x1602, Fields().u32(0x1005).u32(0x1003).text("in_odd_class")));    // 0x100a
  maker.pdb.types.push_back(record(0x1506, Fields().u16(1).u16(0).u32(0).u16(4).text("U")));
  maker.pdb.types.push_back(
      record(0x1504, Fields().u16(1).u16(0).put(0, 12).u16(0x8004).u32(70000).text("C")));
  maker.pdb.types.push_back(
      record(0x1504, Fields().u16(1).u16(0).put(0, 12).u16(0x8005).u32(70000).text("C")));
  for (int i = 0; i < 200; ++i)
    maker.pdb.ids.push_back(record(0x1601, Fields().u32(0).u32(0).text("f" + std::to_string(i))));
  const std::vector<std::uint8_t> bytes = maker.with({}).file();
  const MsfFile file(bytes);
  code::source::Strings texts;
  code::source::Budget memory(kMuch);
  TypeNames names(file, texts, memory);
  EXPECT_EQ(names.problem(), "");
  const auto name = [&](std::uint32_t function) {
    return std::string(texts.text(names.of_function(function)));
  };
  EXPECT_EQ(name(0x100b + 199), "f199") << "records far behind are found first";
  EXPECT_EQ(name(0x1002), "odd, type = name");
  EXPECT_EQ(names.of_function(0x1004), code::source::kNone);
  EXPECT_EQ(name(0x1005), "get") << "a class that is not there";
  EXPECT_EQ(name(0x1006), "f") << "no name of a namespace";
  EXPECT_EQ(name(0x1008), "U::in_union");
  EXPECT_EQ(name(0x1009), "C::in_large_class");
  EXPECT_EQ(name(0x100a), "in_odd_class");
  for (int i = 199; i >= 0; --i)
    EXPECT_EQ(name(0x100b + static_cast<std::uint32_t>(i)), "f" + std::to_string(i));
  for (const std::uint32_t none : {0U, 0xfffU, 0x1003U, 0x100bU + 200, UINT32_MAX})
    EXPECT_EQ(names.of_function(none), code::source::kNone) << none;
}

TEST(PdbInlines, ANameWithoutAnEndIsAProblem) {
  const auto read = [](const InlinesMaker& maker, std::uint32_t function) {
    const std::vector<std::uint8_t> bytes = maker.with({}).file();
    const MsfFile file(bytes);
    code::source::Strings texts;
    code::source::Budget memory(kMuch);
    TypeNames names(file, texts, memory);
    const std::string name(texts.text(names.of_function(function)));
    EXPECT_EQ(texts.text(names.of_function(0x1000)), name.empty() ? "" : "ns::mid")
        << "no record is found after it";
    return name + ": " + names.problem();
  };
  InlinesMaker maker;
  maker.pdb.ids[2] = record(0x1601, Fields().u32(0).u32(0x1001).put(0x61616161, 4));
  EXPECT_EQ(read(maker, 0x1002), ": stream 4 is damaged at offset 100: a name is cut");
  maker.pdb.types[2] = record(0x1505, Fields().u16(1).u16(0).put(0, 12).u16(4).put(0x6161, 2));
  EXPECT_EQ(read(maker, 0x1001), "get: stream 2 is damaged at offset 98: a name is cut");
}

TEST(PdbInlines, CallsWithoutNamesHaveLines) {
  const InlinesMaker maker;
  const PdbMaker made = maker.with({maker.symbols()});
  auto streams = made.streams();
  streams[PdbMaker::IDS].resize(20);
  const std::vector<std::uint8_t> bytes = PdbMaker::msf_of(streams);
  const MsfFile file(bytes);
  const auto tables =
      std::make_shared<const Tables>(read_tables(file, read_debug_streams(file), "a.pdb", kMuch));
  ASSERT_EQ(tables->problems.size(), 1U);
  EXPECT_EQ(tables->problems[0].arguments.at(1), "names of inlined functions");
  EXPECT_EQ(tables->problems[0].arguments.at(2),
            "stream 4 is damaged at offset 0: it has no header of types");
  EXPECT_EQ(at(PdbInfo(tables, kLinked), 0x1014), " /src/a.c:31\n /src/main.c:51\n");
}

}  // namespace
}  // namespace ptkit::code::pdb::test
