// The container of PDBs: blocks in any order, cut and damaged files.
#include <gtest/gtest.h>

#include <random>

#include "code/source/pdb/cursor.h"
#include "code/source/pdb/pdb_info.h"
#include "trace/warning_codes.h"
#include "unit/support/makers/pdb_maker.h"

namespace ptkit::code::pdb::test {
namespace {

using Contents = std::vector<std::uint8_t>;

Contents pattern(std::size_t size) {
  Contents made(size);
  for (std::size_t i = 0; i < size; ++i) made[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
  return made;
}

Contents contents(const Stream& stream) {
  Cursor cursor(stream);
  const base::Bytes bytes = cursor.take(stream.size());
  return {bytes.begin(), bytes.end()};
}

std::string problem_of(const Contents& bytes) { return MsfFile(bytes).problem(); }

Contents changed(Contents bytes, std::size_t at, std::uint32_t value) {
  Fields fields{std::move(bytes)};
  fields.set(at, value);
  return fields.bytes;
}

TEST(PdbStreams, BlocksMayBeInAnyOrder) {
  std::vector<Contents> streams{{}, pattern(1), pattern(512), pattern(513), {}, pattern(200'000)};
  const Contents bytes = PdbMaker::msf_of(streams);
  const MsfFile file(bytes);
  ASSERT_EQ(file.problem(), "");
  std::string problem;
  for (std::uint32_t i = 0; i < streams.size(); ++i) {
    const Stream stream = file.stream(i, problem);
    EXPECT_EQ(stream.number(), i);
    EXPECT_EQ(contents(stream), streams[i]) << i;
  }
  EXPECT_EQ(file.stream(6, problem).size(), 0U);
  EXPECT_EQ(problem, "");
}

TEST(PdbStreams, FieldsMayReachOverBlocks) {
  const Contents made = pattern(4000);
  const Contents bytes = PdbMaker::msf_of({{}, made});
  const MsfFile file(bytes);
  std::string problem;
  const Stream stream = file.stream(1, problem);
  for (const std::uint32_t size : {1U, 3U, 4U, 100U, 511U, 1500U}) {
    Cursor cursor(stream);
    Contents read;
    while (cursor.left() != 0) {
      const base::Bytes part = cursor.take(std::min(size, cursor.left()));
      read.insert(read.end(), part.begin(), part.end());
    }
    EXPECT_EQ(read, made) << size;
    EXPECT_TRUE(cursor.take(1).empty());
    EXPECT_FALSE(cursor.good());
  }
  EXPECT_FALSE(Cursor(stream, 2, 1).good());
  EXPECT_FALSE(Cursor(stream, 0, 4001).good());
}

TEST(PdbStreams, TextsMayReachOverBlocksAndEndWithinTheStream) {
  Contents made(2000, 'x');
  made[700] = 0;
  const Contents bytes = PdbMaker::msf_of({{}, made});
  const MsfFile file(bytes);
  std::string problem;
  const Stream stream = file.stream(1, problem);
  Cursor cursor(stream, 300, 2000);
  EXPECT_EQ(cursor.text(), std::string(400, 'x'));
  EXPECT_EQ(cursor.offset(), 701U);
  EXPECT_EQ(cursor.text(), "");
  EXPECT_FALSE(cursor.good());
}

TEST(PdbStreams, HeadersAreChecked) {
  const Contents good = PdbMaker().file();
  const std::string none = "its first 52 bytes are no header of a PDB";
  EXPECT_EQ(problem_of(good), "");
  EXPECT_EQ(problem_of({}), "its first 0 bytes are no header of a PDB");
  EXPECT_EQ(problem_of(changed(good, 26, 0)), none) << "the end of the magic";
  for (const std::uint32_t size : {0U, 256U, 513U, 65536U, UINT32_MAX})
    EXPECT_EQ(problem_of(changed(good, 32, size)), none) << size;
  EXPECT_EQ(problem_of(changed(good, 36, 0)), none);
  EXPECT_EQ(problem_of(changed(good, 36, 3)), none);
  const std::string cut = "it is cut: of " + std::to_string(good.size()) + " bytes it has ";
  EXPECT_EQ(problem_of(Contents(good.begin(), good.end() - 1)), cut + std::to_string(good.size() - 1));
  EXPECT_NE(problem_of(changed(good, 40, UINT32_MAX)).find("it is cut"), std::string::npos);
  const std::string directory = "its directory of streams is damaged";
  for (const std::uint32_t size : {0U, 3U, 4U + 8, UINT32_MAX}) {
    EXPECT_EQ(problem_of(changed(good, 44, size)), directory) << size;
  }
  for (const std::uint32_t block : {0U, UINT32_MAX})
    EXPECT_EQ(problem_of(changed(good, 52, block)), directory);
}

TEST(PdbStreams, AStreamWithBlocksOfAnotherOneIsNotRead) {
  const std::vector<Contents> streams{pattern(1), pattern(2), pattern(600), pattern(3)};
  const Contents good = PdbMaker::msf_of(streams);
  std::size_t directory = 0;
  for (std::size_t at = 0; at + 12 <= good.size(); at += 4) {
    if (std::equal(good.begin() + static_cast<std::ptrdiff_t>(at),
                   good.begin() + static_cast<std::ptrdiff_t>(at + 12),
                   Fields().u32(4).u32(1).u32(2).bytes.begin()))
      directory = at;
  }
  ASSERT_NE(directory, 0U);
  const std::size_t numbers = directory + 20;
  const auto block = [&](std::size_t index) {
    return static_cast<std::uint32_t>(base::load_le<4>(good.data() + numbers + 4 * index));
  };
  // Blocks of the streams: 0, 1, 2 and 2, 3.
  for (const std::uint32_t other :
       {block(1), block(2), 0U, static_cast<std::uint32_t>(good.size() / 512), UINT32_MAX}) {
    const Contents bytes = changed(good, numbers + 12, other);
    const MsfFile file(bytes);
    ASSERT_EQ(file.problem(), "");
    std::string problem;
    EXPECT_EQ(contents(file.stream(1, problem)), streams[1]);
    EXPECT_EQ(contents(file.stream(3, problem)), streams[3]);
    EXPECT_EQ(problem, "");
    EXPECT_EQ(file.stream(2, problem).size(), 0U);
    EXPECT_EQ(problem.find("stream 2 is damaged: its blocks are"), 0U) << other;
  }
  // Stream 0 is that of an older version of the file.
  const Contents bytes = changed(good, numbers, block(1));
  const MsfFile file(bytes);
  std::string problem;
  EXPECT_EQ(contents(file.stream(1, problem)), streams[1]);
  EXPECT_EQ(problem, "");
}

TEST(PdbStreams, TwoModulesDoNotHaveOneStream) {
  PdbMaker maker;
  for (int i = 0; i < 2; ++i) maker.modules.push_back({Symbols().bytes(), {}});
  auto streams = maker.streams();
  Contents& debug = streams[PdbMaker::DEBUG];
  constexpr std::size_t kSecond = 64 + 64 + 12;
  ASSERT_EQ(debug[kSecond + 34], PdbMaker::MODULES + 1);
  debug[kSecond + 34] = PdbMaker::MODULES;
  const Contents bytes = PdbMaker::msf_of(streams);
  const MsfFile file(bytes);
  EXPECT_EQ(read_debug_streams(file).problem,
            "stream 3 is damaged at offset 140: two modules have one stream");
}

// A PDB with all that is read.
PdbMaker whole() {
  PdbMaker maker;
  Fields checksums;
  const std::uint32_t source = maker.file(checksums, "/src/a.c", 16);
  maker.ids = {record(0x1602, Fields().u32(0x1000).u32(0).text("get")),
               record(0x1601, Fields().u32(0x1002).u32(0).text("f")),
               record(0x1605, Fields().u32(0).text("ns"))};
  maker.types = {record(0x1505, Fields().u16(1).u16(0).put(0, 12).u16(4).text("Box"))};
  maker.publics = {public_symbol("start", 1, 0x10), public_symbol("end", 1, 0x60)};
  Symbols symbols;
  symbols.begin_procedure("start", 1, 0x10, 0x40);
  symbols.begin_site(0x1000, {0x0b, 0x24, 0x05, static_cast<std::uint8_t>(source), 0x0b, 0x28, 0x04, 0x10});
  symbols.begin_site(0x1001, {0x03, 0x08, 0x04, 0x04});
  for (int i = 0; i < 3; ++i) symbols.end();
  Fields parts;
  parts.add(subsection(0xf4, checksums));
  parts.add(subsection(0xf6, Fields().u32(0).u32(0x1000).u32(source).u32(30).u32(0x1001).u32(source).u32(9)));
  parts.add(lines_part(1, 0x10, 0x40, {{source, {{0x10, 50}, {0x2c, 52}}}}));
  maker.modules = {{symbols.bytes(), parts.bytes}};
  return maker;
}

bool ascend(const std::vector<Row>& rows) {
  for (std::size_t i = 1; i < rows.size(); ++i) {
    if (rows[i].address <= rows[i - 1].address) return false;
  }
  return true;
}

// Reads all of a file: no crash, and no more than the file justifies. Returns how many answers there are.
std::size_t read_all(Contents bytes) {
  const std::size_t size = bytes.size();
  const PdbFile file("a.pdb", trace::TraceBuffer::from_vector(std::move(bytes)));
  const auto names = file.names();
  const auto tables = file.tables();
  EXPECT_EQ(file.id()->id.empty(), file.id()->problem.has_value());
  EXPECT_LE(names->symbols.size(), size);
  EXPECT_TRUE(names->symbols.empty() || !names->problem);
  EXPECT_TRUE(ascend(tables->lines) && ascend(tables->all_lines));
  const PdbInfo info(tables, 0);
  for (std::uint64_t at = 0x1000; at < 0x1080; at += 4) {
    const auto frames = info.frames_at(at);
    const code::source::InlinedSpan span = info.inlined_at(at);
    EXPECT_TRUE(span.first <= at && at <= span.last);
    const bool is_inlined = span.call != code::source::InlinedCall::kNone;
    EXPECT_TRUE(!is_inlined || info.inlined_call(span.call).level + 1 == frames.size());
  }
  return names->symbols.size() + tables->lines.size() + tables->sites.size();
}

TEST(PdbDamage, CutFilesGiveNoAnswers) {
  const Contents good = whole().file();
  EXPECT_EQ(read_all(good), 2U + 3 + 2);
  for (std::size_t size = 0; size < good.size(); size += size < 4096 ? 1 : 97)
    EXPECT_EQ(read_all(Contents(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))), 0U) << size;
}

TEST(PdbDamage, CutStreamsAreRead) {
  const auto good = whole().streams();
  for (std::size_t stream = 0; stream < good.size(); ++stream) {
    for (std::size_t size = 0; size < good[stream].size(); ++size) {
      auto cut = good;
      cut[stream].resize(size);
      EXPECT_LE(read_all(PdbMaker::msf_of(cut)), 7U) << stream << " " << size;
    }
  }
}

TEST(PdbDamage, ChangedBytesAreRead) {
  const Contents good = whole().file();
  for (std::size_t at = 0; at < good.size(); ++at) {
    if (good[at] == 0 && at % 5 != 0) continue;
    for (const int value : {0x00, 0x01, 0x7f, 0x80, 0xff}) {
      Contents bytes = good;
      bytes[at] = static_cast<std::uint8_t>(value);
      read_all(std::move(bytes));
    }
  }
}

TEST(PdbDamage, ManyChangesAreRead) {
  const auto good = whole().streams();
  std::mt19937 chance(7);
  for (int round = 0; round < 3000; ++round) {
    auto streams = good;
    for (unsigned change = 0; change < 1 + chance() % 8; ++change) {
      Contents& one = streams[chance() % streams.size()];
      if (!one.empty()) one[chance() % one.size()] = static_cast<std::uint8_t>(chance());
    }
    read_all(PdbMaker::msf_of(streams));
  }
}

TEST(PdbDamage, OtherFilesAreNoPdbs) {
  EXPECT_TRUE(is_pdb(whole().file()));
  for (const Contents& one : {Contents(), Contents(4096, 'x'), pattern(100)}) EXPECT_FALSE(is_pdb(one));
  EXPECT_EQ(shared_pdb("/nowhere/a.pdb"), nullptr);
}

}  // namespace
}  // namespace ptkit::code::pdb::test
