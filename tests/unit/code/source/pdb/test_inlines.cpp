// Inlined calls in the text that llvm-pdbutil writes of a PDB.
#include <gtest/gtest.h>

#include "code/source/pdb/dump/checksums.h"
#include "code/source/pdb/dump/line_reader.h"
#include "code/source/pdb/inlined_calls.h"
#include "code/source/pdb/pdb_info.h"
#include "unit/support/makers/pdb_dump.h"

namespace ptkit::code::pdb::test {
namespace {

constexpr std::uint64_t kMuch = 1 << 20U;
constexpr std::uint64_t kLinked = 0x140000000;

const std::string kModule = "  Mod 0000 | `/src/a.o`: \n";
const std::string kFunction =
    "      72 | S_GPROC32 [size = 48] `start`\n"
    "           parent = 0, end = 900, addr = 0001:0016, code size = 64\n"
    "           type = `0x1001 (int (int))`, debug start = 0, debug end = 0, flags = none\n"
    "     180 | S_BLOCK32 [size = 24] ``\n"
    "           parent = 72, end = 252\n"
    "           code size = 416, addr = 0001:0092\n";
const std::string kOuter =
    "     256 | S_INLINESITE [size = 52]\n"
    "           inlinee = 0x1000 (mid), parent = 72, end = 552\n"
    "             0B24      code 0x4 (+0x4) line 1 (+1)\n"
    "             0530      setfile 20 0x1\n"
    "             0B28      code 0xC (+0x8) line 2 (+1)\n"
    "             0410      code end 0x1C (+0x10)\n";
const std::string kInner =
    "     356 | S_INLINESITE [size = 24]\n"
    "           inlinee = 0x1001 (get), parent = 256, end = 508\n"
    "             0308      code 0x8 (+0x8)\n"
    "             0404      code end 0xC (+0x4)\n"
    "             0000     \n"
    "     380 | S_LOCAL [size = 12] `x`\n"
    "           type=0x0074 (int), flags = param\n"
    "     508 | S_INLINESITE_END [size = 4]\n"
    "     552 | S_INLINESITE_END [size = 4]\n"
    "     900 | S_END [size = 4]\n";
const std::string kInlinees =
    "Mod 0000 | `/src/a.o`: \n"
    " Inlinee |  Line | Source File\n"
    "  0x1000 |    30 | /src/a.c (MD5: 1A41863D876792A0133722A6B38963BD)\n"
    "  0x1001 |    10 | /src/a.h (no checksum)\n";
const std::string kIds =
    "  Showing 4 records\n"
    "  0x1000 | LF_FUNC_ID [size = 16]\n"
    "           name = mid, type = 0x1001, parent scope = 0x1003\n"
    "  0x1001 | LF_MFUNC_ID [size = 16]\n"
    "           name = get, type = 0x1003, class type = 0x1005\n"
    "  0x1002 | LF_FUNC_ID [size = 16]\n"
    "           name = odd, type = name, type = 0x1001, parent scope = <no type>\n"
    "  0x1003 | LF_STRING_ID [size = 12] ID: <no type>, String: ns\n";
const std::string kClasses =
    "  0x1005 | LF_STRUCTURE [size = 52] `Box<int>`\n"
    "           unique name: `_ZTS3BoxIiE`\n"
    "  0x1006 | LF_POINTER [size = 12]\n";
const std::string kLines =
    "Mod 0000 | `/src/a.o`: \n"
    "/src/main.c (MD5: 1A41863D876792A0133722A6B38963BD)\n"
    "  0001:00000010-00000050, line/addr entries = 3\n"
    "    50 00000010 !   51 00000014 !   52 0000002C ! \n";
const std::string kFiles =
    "  Modules:\n"
    "    - Module:          '/src/a.o'\n"
    "      Subsections:\n"
    "        - !FileChecksums\n"
    "          Checksums:\n"
    "            - FileName:        '/src/a.c'\n"
    "              Kind:            MD5\n"
    "              Checksum:        1A41863D876792A0133722A6B38963BD\n"
    "            - FileName:        '/src/it''s.h'\n"
    "              Kind:            None\n"
    "              Checksum:        ''\n"
    "            - FileName:        \"C:\\\\src\\\\part \\\"1\\\".inc\"\n"
    "              Kind:            None\n"
    "              Checksum:        ''\n"
    "    - Module:          '/src/b.o'\n"
    "            - FileName:        /src/b.c\n"
    "              Kind:            None\n";

std::string inlines(const std::string& symbols) {
  return part("Inlinee Lines", kInlinees) + part("Types (IPI Stream)", kIds) + part("Symbols", symbols) +
         kSections;
}

// The tables of a text about inlined calls, with those of kLines.
std::shared_ptr<const Tables> tables_of(const std::string& text) {
  auto tables = std::make_shared<Tables>();
  code::source::Budget memory(kMuch);
  LineReader lines(tables->texts, memory);
  read_in_parts(lines, part("Lines", kLines) + kSections);
  tables->lines = lines.rows();
  InlineReader reader(tables->texts, memory);
  read_in_parts(reader, text);
  EXPECT_EQ(reader.problem(), "");
  ChecksumReader files(tables->texts, memory);
  read_in_parts(files, kFiles);
  ClassReader classes(tables->texts, memory);
  read_in_parts(classes, part("Types (TPI Stream)", kClasses));
  add_inlined_calls(
      *tables, reader, [&](std::uint32_t module, std::uint32_t place) { return files.path(module, place); },
      classes.names);
  unite_lines(*tables);
  return tables;
}

std::string at(const PdbInfo& info, std::uint64_t rva) {
  std::string text;
  for (const code::source::Frame& frame : info.frames_at(kLinked + rva))
    text += std::string(frame.function) + " " + std::string(frame.at.file) + ":" +
            std::to_string(frame.at.line) + "\n";
  return text;
}

std::string problem_of(const std::string& text, std::uint64_t most = kMuch) {
  code::source::Strings texts;
  code::source::Budget memory(most);
  InlineReader reader(texts, memory);
  read_in_parts(reader, text);
  return reader.problem();
}

TEST(PdbInlines, AChainHasTheLineOfEachCall) {
  const PdbInfo info(tables_of(inlines(kModule + kFunction + kOuter + kInner)), kLinked);
  EXPECT_EQ(at(info, 0x1010), " /src/main.c:50\n");
  EXPECT_EQ(at(info, 0x1014), "ns::mid /src/a.c:31\n /src/main.c:51\n");
  EXPECT_EQ(at(info, 0x1018), "Box<int>::get /src/a.h:10\nns::mid /src/a.c:31\n /src/main.c:51\n");
  EXPECT_EQ(at(info, 0x101c), "ns::mid C:\\src\\part \"1\".inc:32\n /src/main.c:51\n");
  EXPECT_EQ(at(info, 0x102c), " /src/main.c:52\n");
  EXPECT_EQ(at(info, 0x1050), "");
}

TEST(PdbInlines, ALineIsThatOfTheInnermostCall) {
  const PdbInfo info(tables_of(inlines(kModule + kFunction + kOuter + kInner)), kLinked);
  const auto cursor = info.line_cursor();
  for (std::uint64_t rva = 0x1000; rva < 0x1060; ++rva) {
    const auto frames = info.frames_at(kLinked + rva);
    const code::source::SourceLine line = cursor->at(kLinked + rva);
    EXPECT_EQ(line.line, frames.empty() ? 0 : frames.front().at.line) << rva;
    EXPECT_EQ(line.file, frames.empty() ? std::string_view{} : frames.front().at.file) << rva;
  }
}

TEST(PdbInlines, CallsHaveCallersAndBegins) {
  const PdbInfo info(tables_of(inlines(kModule + kFunction + kOuter + kInner)), kLinked);
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
  std::string other = kFunction + kInner;
  other.replace(other.find("(get), parent = 256"), 19, "(get), parent = 72 ");
  const PdbInfo info(
      tables_of(inlines(kModule + kFunction + kOuter + kInner + "  Mod 0001 | `b`: \n" + other)), kLinked);
  EXPECT_EQ(at(info, 0x1014), "ns::mid /src/a.c:31\n /src/main.c:51\n");
}

TEST(PdbInlines, CallsOfNoFunctionAreLeftOut) {
  EXPECT_EQ(tables_of(inlines(kModule + kOuter + kInner))->sites.size(), 0u);
}

TEST(PdbInlines, CallsInTooManyOthersAreLeftOut) {
  std::string symbols = kModule + kFunction;
  for (int level = 0; level < 1000; ++level)
    symbols +=
        "     256 | S_INLINESITE [size = 52]\n           inlinee = 0x1000 (mid), parent = 72, end = 552\n"
        "             0304      code 0x4 (+0x4)\n             0404      code end 0x8 (+0x4)\n";
  const auto tables = tables_of(inlines(symbols + "     900 | S_END [size = 4]\n"));
  EXPECT_EQ(tables->sites.size(), code::source::kMostLevels);
  EXPECT_TRUE(tables->is_cut);
  EXPECT_EQ(PdbInfo(tables, kLinked).frames_at(kLinked + 0x1014).size(), code::source::kMostLevels + 1);
}

TEST(PdbInlines, OtherFormsAreAProblem) {
  const std::string form = "llvm-pdbutil lists inlined calls in a form that is not known";
  const std::string good = kModule + kFunction + kOuter;
  const auto changed = [&](const std::string& from, const std::string& to) {
    std::string text = good + kInner;
    text.replace(text.find(from), from.size(), to);
    return inlines(text);
  };
  EXPECT_EQ(problem_of(changed("", "")), "");
  EXPECT_EQ(problem_of(changed("line 1 (+1)", "row 1")), form);
  EXPECT_EQ(problem_of(changed("code size = 64", "size = 64")), form);
  EXPECT_EQ(problem_of(changed("inlinee = 0x1000", "function = 0x1000")), form);
  EXPECT_EQ(problem_of(changed("parent = 256, end = 508", "parent = 256, end = 553")), form);
  EXPECT_EQ(problem_of(changed("parent = 256, end = 508", "parent = 256, end = 300")), form);
  EXPECT_EQ(problem_of(kSections + part("Symbols", good)), form) << "the text is cut";
  EXPECT_EQ(problem_of(kSections), "llvm-pdbutil lists neither sections nor symbols of it");
  EXPECT_EQ(problem_of(changed("", ""), 500), "it has more inlined calls than a file of its size should");
  EXPECT_NE(
      problem_of(part("Original Section Headers", "  SECTION HEADER #1\n") + inlines(good)).find("OMAP"),
      std::string::npos);
}

TEST(PdbInlines, NamesAreKnownByTheirRecords) {
  code::source::Strings texts;
  code::source::Budget memory(kMuch);
  IdNames names(texts, memory);
  for (const char* const line :
       {"  0x1002 | LF_FUNC_ID [size = 16]",
        "   name = odd, type = name, type = 0x1001, parent scope = <no type>",
        "  0x1004 | LF_BUILDINFO [size = 16]", "   name = no, type = 0x1001, parent scope = <no type>",
        "  0x1005 | LF_MFUNC_ID [size = 16]", "   name = get, type = 0x1003, class type = 0x1009"})
    names.read_line(line);
  EXPECT_EQ(texts.text(names.name_of(0x1002, {})), "odd, type = name");
  EXPECT_EQ(names.name_of(0x1004, {}), code::source::kNone);
  EXPECT_EQ(names.class_of(0x1005), 0x1009u);
  EXPECT_EQ(texts.text(names.name_of(0x1005, {})), "get");
}

TEST(PdbInlines, FilesAreKnownByTheirPlace) {
  code::source::Strings texts;
  code::source::Budget memory(kMuch);
  ChecksumReader files(texts, memory);
  read_in_parts(files, kFiles + "            - FileName:        \"\\x41\"\n");
  EXPECT_EQ(texts.text(files.path(0, 0)), "/src/a.c");
  EXPECT_EQ(texts.text(files.path(0, 24)), "/src/it's.h");
  EXPECT_EQ(texts.text(files.path(0, 32)), "C:\\src\\part \"1\".inc");
  EXPECT_EQ(files.path(0, 8), code::source::kNone);
  EXPECT_EQ(texts.text(files.path(1, 0)), "/src/b.c");
  EXPECT_EQ(files.path(2, 0), code::source::kNone);
}

}  // namespace
}  // namespace ptkit::code::pdb::test
