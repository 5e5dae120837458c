// Lists of symbols of each kind, as the tools print them, and texts that are none.
#include <gtest/gtest.h>

#include <random>

#include "formats/symbols/symbol_list.h"

namespace ptkit::formats {
namespace {

base::Bytes bytes_of(std::string_view text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

SymbolList read(std::string_view text, const std::string& path = "list") {
  auto list = read_symbol_list(path, bytes_of(text));
  EXPECT_TRUE(list.ok()) << (list.ok() ? "" : list.failure().detail);
  return list.ok() ? std::move(list.value()) : SymbolList{};
}

std::string failure_of(std::string_view text) {
  const auto list = read_symbol_list("the list", bytes_of(text));
  return list.ok() ? "(" + list.value().kind + ")" : list.failure().detail;
}

// "main 1139, foo(int) 1150 +16": names, addresses, sizes.
std::string symbols_of(const SymbolList& list) {
  std::string text;
  char number[64];
  for (const trace::SymbolEntry& one : list.symbols) {
    std::snprintf(number, sizeof number, one.size != 0 ? " %llx +%llu" : " %llx",
                  static_cast<unsigned long long>(one.file_offset),
                  static_cast<unsigned long long>(one.size));
    text += (text.empty() ? "" : ", ") + one.name + number;
  }
  return text;
}

TEST(SymbolList, ReadsNm) {
  const SymbolList list = read(
      "a.out:\n                 w __gmon_start__\n                 U puts@GLIBC_2.2.5\n"
      "0000000000001139 T main\n0000000000001150 t foo(int, char)\t/src/a.c:7\n0000000000004010 B data\n"
      "0000000000001170 W weak@@VERS_1\n0000000000001180 b not_code\n");
  EXPECT_EQ(list.kind, "output of nm");
  EXPECT_EQ(symbols_of(list), "main 1139, foo(int, char) 1150, weak 1170");
  EXPECT_FALSE(list.at_run_time);
}

TEST(SymbolList, ReadsOtherFormatsOfNm) {
  const SymbolList sized = read("0000000000001139 0000000000000022 T main\n0000000000001160 t small\n");
  EXPECT_EQ(sized.kind, "output of nm");
  EXPECT_EQ(symbols_of(sized), "main 1139 +34, small 1160");
  const SymbolList posix = read("main T 1139 22\nputs U         \n_init T 1000\ndata D 4010 4\n");
  EXPECT_EQ(posix.kind, "output of nm -P");
  EXPECT_EQ(symbols_of(posix), "main 1139 +34, _init 1000");
  const SymbolList table = read(
      "\nSymbols from a.out:\n\nName                  Value           Class        Type         Size         "
      "    Line  "
      "Section\n\nmain                |0000000000001139|   T  |              FUNC|0000000000000022|     "
      "|.text\n"
      "puts                |                |   U  |            NOTYPE|                |     |*UND*\n");
  EXPECT_EQ(table.kind, "output of nm -f sysv");
  EXPECT_EQ(symbols_of(table), "main 1139 +34");
}

TEST(SymbolList, ReadsNmOf32BitPrograms) {
  const SymbolList list = read("08049176 T main\n0804c000 d data\n00401010 T _work@8\n");
  EXPECT_EQ(symbols_of(list), "main 8049176, _work@8 401010");
}

TEST(SymbolList, ReadsKernels) {
  const SymbolList map =
      read("0000000000000000 D __per_cpu_start\nffffffff81000000 T _text\nffffffff81000040 t start\n");
  EXPECT_EQ(symbols_of(map), "_text ffffffff81000000, start ffffffff81000040");
  EXPECT_EQ(map.linked_base, 0xffffffff81000000);
  EXPECT_FALSE(map.at_run_time);
  const SymbolList live = read("ffffffff9e000000 T _text\nffffffffc0123000 t work\t[e1000]\n");
  EXPECT_EQ(symbols_of(live), "_text ffffffff9e000000, work ffffffffc0123000");
  EXPECT_TRUE(live.at_run_time);
  EXPECT_NE(failure_of("0000000000000000 T _text\n0000000000000000 t start\n").find("kptr_restrict"),
            std::string::npos);
}

TEST(SymbolList, ReadsMapsOfJitCode) {
  const char* const text = "7f3001000 b LazyCompile:~f a.js:1\n0x7f3002000 120 py::g:/x.py\n";
  const SymbolList list = read(text, "/tmp/perf-4711.map");
  EXPECT_EQ(symbols_of(list), "LazyCompile:~f a.js:1 7f3001000 +11, py::g:/x.py 7f3002000 +288");
  EXPECT_TRUE(list.at_run_time);
  EXPECT_EQ(list.pid, 4711);
  EXPECT_EQ(read(text, "perf-x.map").pid, trace::kNoId);
  // .NET and the JVM have blanks in names, .NET capitals and leading zeros in addresses.
  EXPECT_EQ(symbols_of(read("00007F3001000000 1a void [app] App::Main(string[])[Tier0]\n"
                            "00007F3002000000 b void [app] App::F()[Tier1]\n")),
            "void [app] App::Main(string[])[Tier0] 7f3001000000 +26, void [app] App::F()[Tier1] "
            "7f3002000000 +11");
}

TEST(SymbolList, ReadsPairs) {
  EXPECT_EQ(symbols_of(read("# address name\n0x401000 main\n0x401010 sub_401010\n")),
            "main 401000, sub_401010 401010");
}

constexpr const char* kLinkerMap =
    " DllTwo\r\n\r\n Timestamp is 4956e425 (Sun Dec 28 10:27:49 2008)\r\n\r\n"
    " Preferred load address is 0000000180000000\r\n\r\n"
    " Start         Length     Name                   Class\r\n"
    " 0001:00000000 00000da6H .text$mn                CODE\r\n 0001:00000db0 00000053H .text$x  CODE\r\n"
    " 0002:00000000 000000e8H .idata$5                DATA\r\n\r\n"
    "  Address         Publics by Value              Rva+Base               Lib:Object\r\n\r\n"
    " 0000:00000003       ___safe_se_handler_count   0000000000000003     <absolute>\r\n"
    " 0001:00000010       ?f@@YAHXZ                  0000000180001010 f   a.obj\r\n"
    " 0002:00000010       data                       0000000180003010     a.obj\r\n\r\n"
    " entry point at        0001:00000010\r\n\r\n Static symbols\r\n\r\n"
    " 0001:00000020       helper                     0000000180001020 f   a.obj\r\n";

TEST(SymbolList, ReadsMapsOfLinkers) {
  const SymbolList list = read(kLinkerMap);
  EXPECT_EQ(list.kind, "map of a linker");
  EXPECT_EQ(symbols_of(list), "?f@@YAHXZ 180001010, helper 180001020");
  EXPECT_EQ(list.linked_base, 0x180000000);
  EXPECT_EQ(list.module, "DllTwo");
  EXPECT_TRUE(list.segments.empty());
}

TEST(SymbolList, ReadsMapsOfIda) {
  const SymbolList list = read(
      "\n Start         Length     Name                   Class\n 0001:00000000 000001800H .text   CODE\n"
      " 0002:00000000 000000100H INIT                   CODE\n 0003:00000000 000000100H .data   DATA\n\n\n"
      "  Address         Publics by Value\n\n 0001:00000010       sub_11010\n 0002:00000004       "
      "DriverEntry\n"
      " 0003:00000008       datum\n\n Program entry point at 0002:00000004\n");
  EXPECT_EQ(list.kind, "map of IDA or Delphi");
  EXPECT_EQ(symbols_of(list), "sub_11010 1010, DriverEntry 3004");
  EXPECT_EQ(list.linked_base, 0u);
  ASSERT_EQ(list.segments.size(), 3u);
  EXPECT_EQ(list.segments[1].name, "INIT");
  EXPECT_EQ(list.segments[1].begin, 0x3000u);
}

TEST(SymbolList, ReadsMapsWithBeginsOfSegments) {
  const SymbolList delphi = read(
      " Start         Length     Name                   Class\n 0001:00401000 00050F4CH .text  CODE\n\n"
      "  Address         Publics by Name\n\n 0001:00000024       twice\n\n"
      "  Address         Publics by Value\n\n 0001:00000024       System.Halt\n");
  EXPECT_EQ(symbols_of(delphi), "System.Halt 401024");
  EXPECT_EQ(delphi.linked_base, 0x400000u);
  const SymbolList absolute = read(
      " Start              Length     Name   Class\n 0001:0000000140001000 000001000H .text  CODE\n\n"
      "  Address         Publics by Value\n\n 0001:0000000140001024       main\n");
  EXPECT_EQ(symbols_of(absolute), "main 140001024");
  EXPECT_EQ(absolute.linked_base, 0x140000000u);
}

TEST(SymbolList, ReadsMapsOfGnuLd) {
  const SymbolList list = read(
      "Archive member included\n\nDiscarded input sections\n\n .note 0x0000000000000000 0x20 crt1.o\n\n"
      "Memory Configuration\n\nName Origin Length\n*default* 0x0 0xffffffffffffffff\n\n"
      "Linker script and memory map\n\n"
      "                0x0000000000400000                PROVIDE (__executable_start = SEGMENT_START "
      "(\"text\", 0x400000))\n"
      ".interp         0x00000000004002a8       0x1c\n                0x00000000004002a8                "
      "not_code\n"
      ".text           0x0000000000401040      0x1a5\n *(.text.unlikely)\n"
      " .text          0x0000000000401040       0x26 crt1.o\n"
      "                0x0000000000401040                _start\n"
      " .text.a_long_name_of_a_section\n                0x0000000000401139       0x22 main.o\n"
      "                0x0000000000401139                ns::f(int)\n"
      "                0x0000000000402000                . = ALIGN (0x1000)\n"
      "                0x0000000000402000                etext = .\n"
      " *fill*         0x0000000000402000        0x4 \n"
      ".data           0x0000000000404000        0x4\n                0x0000000000404000                "
      "datum\n");
  EXPECT_EQ(list.kind, "map of GNU ld");
  EXPECT_EQ(symbols_of(list), "_start 401040, ns::f(int) 401139");
  EXPECT_EQ(list.linked_base, 0x400000u);
}

TEST(SymbolList, ReadsWindbg) {
  const SymbolList list = read(
      "0: kd> lm f\nstart             end                 module name\n"
      "fffff803`61a00000 fffff803`62a46000   nt       \\SystemRoot\\system32\\ntoskrnl.exe\n"
      "fffff806`85380000 fffff806`85450000   srv2       (pdb symbols)          C:\\sym\\srv2.pdb\n"
      "    Image name: srv2.sys\n\nUnloaded modules:\nfffff806`10000000 fffff806`10010000   old.sys\n"
      "0: kd> x srv2!*\n"
      "fffff806`85389310 srv2!Srv2ProcessPacket (<no parameter info>)\n"
      "fffff806`85389400 srv2!Other = <no type information>\n"
      "fffff806`853a0000 srv2!g_count = 0n7\n"
      "fffff806`85389500 srv2!std::map<int,char>::at (class X *, int)\n");
  EXPECT_EQ(list.kind, "output of WinDbg");
  EXPECT_EQ(
      symbols_of(list),
      "Srv2ProcessPacket fffff80685389310, Other fffff80685389400, std::map<int,char>::at fffff80685389500");
  EXPECT_TRUE(list.at_run_time);
  ASSERT_EQ(list.modules.size(), 2u);
  EXPECT_EQ(list.modules[0].name, "\\SystemRoot\\system32\\ntoskrnl.exe");
  EXPECT_EQ(list.modules[1].name, "srv2.sys");
  EXPECT_EQ(list.modules[1].begin, 0xfffff80685380000);
  EXPECT_EQ(list.modules[1].end, 0xfffff80685450000);
}

TEST(SymbolList, ReadsProfiles) {
  const SymbolList isf = read(
      "{\"metadata\": {\"windows\": {\"pdb\": {\"GUID\": \"3F2504E04F8911D39A0C0305E82C3301\", \"age\": 26, "
      "\"database\": \"ntkrnlmp.pdb\"}}}, \"base_types\": {\"symbols\": {\"x\": {\"address\": 1}}}, "
      "\"symbols\": {\"NtCreateFile\": {\"address\": 4096, \"type\": {\"address\": 7}}, \"none\": {}}}");
  EXPECT_EQ(isf.kind, "Volatility ISF");
  EXPECT_EQ(symbols_of(isf), "NtCreateFile 1000");
  EXPECT_EQ(isf.module, "ntkrnlmp.pdb");
  EXPECT_EQ(isf.pdb, "3f2504e04f8911d39a0c0305e82c3301-1a");
  EXPECT_EQ(isf.linked_base, 0u);
  const SymbolList rekall = read(
      "{\"$CONSTANTS\": {\"f\": 16, \"text\": \"x\"},\n \"$FUNCTIONS\": {\"g\": 32}, \"$METADATA\": "
      "{\"PDBFile\": \"srv2.pdb\"}, \"$STRUCTS\": {\"s\": [8, {\"a\": [0, [\"int\"]]}]}}");
  EXPECT_EQ(rekall.kind, "Rekall profile");
  EXPECT_EQ(symbols_of(rekall), "f 10, g 20");
  EXPECT_EQ(rekall.module, "srv2.pdb");
  const SymbolList linux = read("{\"symbols\": {\"_text\": {\"address\": 18446744071578845184}}}");
  EXPECT_EQ(linux.linked_base, 0xffffffff81000000);
}

TEST(SymbolList, LeavesOutNamelessMembersOfProfiles) {
  EXPECT_EQ(symbols_of(read("{\"$FUNCTIONS\": {\"\": 32, \"f\": 16}}")), "f 10");
  EXPECT_EQ(symbols_of(read("{\"$FUNCTIONS\": [32, 33], \"$CONSTANTS\": {\"g\": 1}}")), "g 1");
  EXPECT_NE(failure_of("{\"$METADATA\": {}, \"$FUNCTIONS\": {\"\": 32}}").find("is JSON without symbols"),
            std::string::npos);
}

TEST(SymbolList, SaysWhatOtherFilesAre) {
  const auto says = [](std::string_view text, const char* part) {
    const std::string failure = failure_of(text);
    EXPECT_TRUE(failure.starts_with("the list: ")) << failure;
    EXPECT_NE(failure.find(part), std::string::npos) << failure;
  };
  says("", "is an empty file and no list of symbols that ptkit knows; give the output of nm");
  says("what is this\nno list of symbols\nat all\n", "is a text file and no list");
  says(std::string_view("\x7f"
                        "ELF\0\0",
                        6),
       "give it as an image");
  says("Microsoft C/C++ program database 2.00\r\n\x1a", "is a PDB of Visual C++ 6 or older");
  says("{\"a\": {\"b\": 1}}", "is JSON without symbols");
  says("{\"symbols\": {\"f\": {\"address\": 4096}", "is no JSON at byte");
  says("                 U puts\n0000000000004010 D datum\n", "lists no function");
  says(std::string("0000000000001139 T main\n\0\n", 26), "no list");
}

TEST(SymbolList, SurvivesNestingAndRandomBytes) {
  EXPECT_NE(failure_of("{\"symbols\":" + std::string(1'000'000, '[')).find("is no JSON"), std::string::npos);
  std::mt19937_64 random(11);
  const std::string texts[] = {
      kLinkerMap, "0000000000001139 T main\nffffffff81000000 t x\t[m]\n7f00 2f f\n",
      "start end module name\nfffff803`61a00000 fffff803`62a46000 nt\nfffff803`61a00000 nt!f (x)\n",
      "{\"symbols\": {\"f\": {\"address\": 4096}}, \"$CONSTANTS\": {\"g\": 1}}",
      "Linker script and memory map\n.text 0x10 0x20\n                0x10  f\n"};
  for (int round = 0; round < 5000; ++round) {
    std::string text = texts[random() % std::size(texts)];
    for (int i = 0; i < 3; ++i) text[random() % text.size()] = static_cast<char>(random());
    if (random() % 4 == 0) text.resize(random() % text.size());
    const auto list = read_symbol_list("x", bytes_of(text));
    if (!list.ok()) continue;
    for (const auto& one : list.value().symbols) EXPECT_FALSE(one.name.empty());
  }
}

}  // namespace
}  // namespace ptkit::formats
