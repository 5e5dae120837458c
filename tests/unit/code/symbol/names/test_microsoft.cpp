// Names of Microsoft's scheme: what they become, and what hostile ones may cost.
#include <gtest/gtest.h>

#include <array>
#include <ctime>
#include <string>
#include <utility>

#include "code/symbol/names/demangle.h"
#include "code/symbol/names/microsoft.h"
#include "code/symbol/names/microsoft_size.h"
#include "code/symbol/names/name_filter.h"
#include "code/symbol/names/short_name.h"
#include "code/symbol/table.h"

namespace ptkit::code::symbol {
namespace {

std::string repeated(std::string_view text, int count) {
  std::string all;
  for (; count > 0; --count) all += text;
  return all;
}

TEST(MicrosoftNames, AreDemangled) {
  if (!has_microsoft_demangler()) GTEST_SKIP() << "LLVM's demangler is not installed (package llvm-dev)";
  constexpr std::array<std::pair<std::string_view, std::string_view>, 17> kNames{{
      {"?f@@YAXXZ", "f(void)"},
      {"?f@ns@@YAHPEBDAEAH@Z", "ns::f(char const *, int &)"},
      {"?f@A@@QEAAXPEAV1@@Z", "A::f(class A *)"},
      {"??0A@@QEAA@XZ", "A::A(void)"},
      {"??1A@@UEAA@XZ", "A::~A(void)"},
      {"??HA@@QEAA?AV0@AEBV0@@Z", "A::operator+(class A const &)"},
      {"??BA@@QEBAHXZ", "A::operator int(void) const"},
      {"??_GA@@UEAAPEAXI@Z", "A::`scalar deleting dtor'(unsigned int)"},
      {"??$f@H@@YAXH@Z", "f<int>(int)"},
      {"??$f@$0CK@@@YAXXZ", "f<42>(void)"},
      {"??$f@$1?g@@YAXXZ@@YAXXZ", "f<&g(void)>(void)"},
      {"?f@@YAXP6AHH@ZP8A@@EAAHXZ@Z", "f(int (__cdecl *)(int), int (__cdecl A::*)(void))"},
      {"?f@?A0x12345678@@YAXXZ", "`anonymous namespace'::f(void)"},
      {"??R<lambda_1>@?0??main@@YAHXZ@QEBA@XZ",
       "`int __cdecl main(void)'::`1'::<lambda_1>::operator()(void) const"},
      {"??__Ex@@YAXXZ", "`dynamic initializer for 'x''(void)"},
      {"?x@A@@2HA", "A::x"},
      {"?f@A@@WBA@EAAXXZ", "[thunk]: A::f`adjustor{16}'(void)"},
  }};
  for (const auto& [raw, name] : kNames) {
    EXPECT_TRUE(is_mangled(raw));
    EXPECT_EQ(demangle(raw), name) << raw;
  }
}

TEST(MicrosoftNames, StayIfTheyAreNone) {
  for (const std::string_view raw :
       {"?", "??", "?f", "?f@@", "?f@@YAXXZ.cold", "?f@@YAXXZZ", "?f@@YA", "??@0123456789abcdef@",
        "?f@@YAX0@Z", "?x@?$A@H", "??_7A@@6B@", "??_C@_02@"}) {
    EXPECT_EQ(demangle(raw), raw);
  }
}

TEST(MicrosoftNames, HaveShortForms) {
  if (!has_microsoft_demangler()) GTEST_SKIP() << "LLVM's demangler is not installed (package llvm-dev)";
  EXPECT_EQ(short_name(demangle("?f@A@ns@@QEAAXPEAV12@@Z")), "ns::A::f");
  EXPECT_EQ(short_name(demangle("??$f@V?$vector@H@std@@@ns@@YAXXZ")), "ns::f");
}

// Files are searched by whole names, short ones and mangled ones, without demangling names that cannot be
// meant.
TEST(MicrosoftNames, AreFoundInBothForms) {
  if (!has_microsoft_demangler()) GTEST_SKIP() << "LLVM's demangler is not installed (package llvm-dev)";
  const Table table(
      {{"?spin@A@@QEAAXH@Z", 0x10, 4}, {"??_GA@@UEAAPEAXI@Z", 0x20, 4}, {"?other@@YAXXZ", 0x30, 4}});
  const auto found = [&](std::string_view name) {
    std::string all;
    for (const Table::Form form : {Table::Form::EXACT, Table::Form::SHORT, Table::Form::LAST_PART}) {
      for (const std::size_t index : table.named(name, form))
        all += std::to_string(table.offset(index)) + ' ';
      if (!all.empty()) break;
    }
    return all;
  };
  EXPECT_EQ(found("?spin@A@@QEAAXH@Z"), "16 ");
  EXPECT_EQ(found("A::spin(int)"), "16 ");
  EXPECT_EQ(found("A::spin"), "16 ");
  EXPECT_EQ(found("spin"), "16 ");
  EXPECT_EQ(found("A::`scalar deleting dtor'(unsigned int)"), "32 ");
  EXPECT_EQ(found("nothing"), "");
  EXPECT_EQ(table.matching("A::*").size(), 2U);
  EXPECT_EQ(table.matching("*deleting*").size(), 1U);
  EXPECT_EQ(table.matching("?other@*").size(), 1U);
  EXPECT_EQ(table.name(0), "A::spin(int)");
  EXPECT_EQ(table.raw_name(0), "?spin@A@@QEAAXH@Z");
}

TEST(MicrosoftSize, RefusesLongAndDeepNames) {
  EXPECT_TRUE(microsoft_size("?" + std::string(1000, 'f') + "@@YAXXZ"));
  EXPECT_FALSE(microsoft_size("?" + std::string(kLongestMicrosoftName, 'f') + "@@YAXXZ"));
  EXPECT_TRUE(microsoft_size("?f@@YAX" + repeated("PEA", 50) + "H@Z"));
  EXPECT_FALSE(microsoft_size("?f@@YAX" + repeated("PEA", 1000) + "H@Z"));
  EXPECT_FALSE(microsoft_size("?f@@YAX" + repeated("P6AX", 500) + "X" + repeated("ZXZ", 500) + "@Z"));
  EXPECT_FALSE(microsoft_size("?f@@3" + repeated("V?$A@", 400) + "H" + repeated("@@", 400) + "A"));
  EXPECT_FALSE(microsoft_size(repeated("??", 1000)));
  EXPECT_FALSE(microsoft_size("?f" + repeated("@?1??f", 400)));
}

// Each parameter refers to the one before eight times: 8 to the power of 9 characters of a hundred.
TEST(MicrosoftSize, RefusesChainsOfBackReferences) {
  std::string parameters = "?f@@YAXP6AXPAH@Z";
  for (int i = 0; i < 9; ++i) parameters += "P6AX" + std::string(8, static_cast<char>('0' + i)) + "@Z";
  EXPECT_FALSE(microsoft_size(parameters + "@Z"));
  std::string names = "V?$A@H@@";
  for (int i = 0; i < 12; ++i) names = "V?$A@" + names + repeated("V1@", 4) + "@@";
  EXPECT_FALSE(microsoft_size("?f@@3" + names + "A"));
  std::string types = "H";
  for (int i = 0; i < 12; ++i) types = "V?$A@" + types + "@@";
  EXPECT_TRUE(microsoft_size("?f@@YAX" + types + "000@Z"));
}

TEST(MicrosoftSize, TakesNamesOfContainers) {
  const std::string text = "V?$basic_string@DU?$char_traits@D@std@@V?$allocator@D@2@@std@@";
  const std::string map = "V?$map@" + text + text + "U?$less@" + text + "@2@V?$allocator@U?$pair@$$CB" +
                          text + text + "@std@@@2@@std@@";
  EXPECT_TRUE(microsoft_size("?f@@YAXAEB" + map + "0AEA" + map + "1@Z"));
}

// What is demangled after all is demangled soon.
TEST(MicrosoftNames, HostileNamesTakeNoTime) {
  for (int levels = 1; levels < 60; ++levels) {
    for (int copies = 1; copies < 9; ++copies) {
      std::string type = "V?$A@H@@";
      for (int i = 0; i < levels; ++i) type = "V?$A@" + type + repeated("V1@", copies) + "@@";
      const std::string name = "?f@@YAX" + type + repeated("0", copies) + "@Z";
      const std::clock_t begin = std::clock();
      const std::string text = demangle(name);
      EXPECT_LE(text.size(), kMostMicrosoftText + name.size());
      EXPECT_LT(std::clock() - begin, CLOCKS_PER_SEC) << name;
    }
  }
}

}  // namespace
}  // namespace ptkit::code::symbol
