// Bounds of names of the Itanium C++ ABI: real names are demangled as the C++ library does, hostile ones
// stay.
#include <cxxabi.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <memory>
#include <ostream>
#include <string>

#include "base/system/mapped_file.h"
#include "code/image/elf/elf.h"
#include "code/symbol/names/demangle.h"
#include "code/symbol/names/itanium_size.h"

namespace ptkit::code::symbol {
namespace {

std::string by_library(const std::string& name) {
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> text(
      abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status), &std::free);
  return text ? std::string(text.get()) : std::string();
}

// "S_", "S0_", ...
std::string reference(int index) {
  constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string digits;
  for (--index; index >= 0; index = index / 36 - 1)
    digits.insert(digits.begin(), kDigits[static_cast<std::size_t>(index % 36)]);
  return "S" + digits + "_";
}

// Types "A<A<...>, A<...> >", each with the one before twice.
std::string doubled_types(int levels) {
  std::string types = "1AIiE";
  for (int i = 1; i <= levels; ++i) types += "S_I" + reference(i) + reference(i) + "E";
  return types;
}

std::string repeated(std::string_view text, int count) {
  std::string all;
  for (; count > 0; --count) all += text;
  return all;
}

void expect_all_names(const std::string& path, std::size_t least) {
  const auto file = base::map_file(path);
  ASSERT_TRUE(file.ok()) << path;
  std::size_t count = 0;
  for (const trace::SymbolEntry& symbol : image::elf_symbols(file.value().bytes)) {
    if (!symbol.name.starts_with("_Z") || symbol.name.find_first_of("@ ") != std::string::npos) continue;
    const std::string text = by_library(symbol.name);
    if (text.empty()) continue;
    const auto size = itanium_size(symbol.name);
    ASSERT_TRUE(size) << symbol.name;
    ASSERT_GE(*size, text.size()) << symbol.name;
    ++count;
  }
  EXPECT_GE(count, least) << path;
}

TEST(ItaniumSize, TakesAllNamesOfTheLibraryAndOfThisProgram) {
  Dl_info library{};
  ASSERT_NE(dladdr(reinterpret_cast<void*>(&abi::__cxa_demangle), &library), 0);
  expect_all_names(library.dli_fname, 1000);
  expect_all_names("/proc/self/exe", 5000);
}

TEST(ItaniumSize, TakesRareForms) {
  for (const char* name : {"_Z1fIiEvDTsr3std9is_signedIT_EE5valueE",
                           "_ZN1AcvT_IiEEv",
                           "_ZN1AcvPKT_IiEEv",
                           "_ZGVZ1fvE1x",
                           "_ZThn16_N1A1fEv",
                           "_ZTv0_n24_N1AD1Ev",
                           "_ZTCN1AE0_N1BE",
                           "_ZTch0_h16_N1A1fEv",
                           "_ZZ1fvE1x_0",
                           "_Z1fIJicdEEvDpT_",
                           "_Z1fDn",
                           "_Z1fPDoFvvE",
                           "_Z1fM1AKFivE",
                           "_Z1fRA5_Kc",
                           "_Z1fU8__vectorf",
                           "_Z1fDv4_f",
                           "_ZNSsC1Ev",
                           "_ZNKSt8functionIFvvEEclEv",
                           "_ZN1A1fEv.isra.0.constprop.1",
                           "_ZZ1fvENKUlT_E_clIiEEDaS_",
                           "_ZN12_GLOBAL__N_11fEv",
                           "_Z1fB5cxx11v",
                           "_ZZ1fvEs",
                           "_ZZ1fiEd_NKUlvE_clEv",
                           "_Z1fIXadL_Z1gvEEEvv",
                           "_Z1fILb1ELi42ELin3EEvv",
                           "_ZN1fILPKc0EEEvv",
                           "_Z1fIiEDTcl1gfp_EET_",
                           "_Z1fIJiiEEDTplfp_spfp0_EDpT_",
                           "_Z1fIiEDTnw_T_piEEv",
                           "_ZN1A1fIiEENS_1BIT_XsrNS_1CIS2_EE5valueEEEOS5_",
                           "_Zli3_kmy"}) {
    const std::string text = by_library(name);
    EXPECT_FALSE(text.empty()) << name;
    EXPECT_EQ(demangle(name), text) << name;
    EXPECT_GE(itanium_size(name).value_or(0), text.size()) << name;
  }
}

TEST(ItaniumSize, RefusesChainsOfSubstitutions) {
  EXPECT_EQ(demangle("_Z1f" + doubled_types(1)), "f(A<int>, A<A<int>, A<int> >)");
  EXPECT_TRUE(itanium_size("_Z1f" + doubled_types(10)));
  for (const int levels : {16, 20, 40, 60})
    EXPECT_FALSE(itanium_size("_Z1f" + doubled_types(levels))) << levels;
}

// Each parameter of the inner function is its argument, which has the outer function's twice, and so on.
TEST(ItaniumSize, RefusesChainsOfTemplateParameters) {
  const auto chain = [](int levels) {
    std::string name = "1fI1AIT_T_EE";
    for (int i = 0; i < levels; ++i) name = "Z" + name + "vT_E1fI1AIT_T_EE";
    return "_Z" + name + "vT_";
  };
  EXPECT_TRUE(itanium_size(chain(2)));
  EXPECT_FALSE(itanium_size(chain(20)));
  EXPECT_EQ(demangle("_Z1fI1AIiEEvT_"), "void f<A<int> >(A<int>)");
}

TEST(ItaniumSize, RefusesChainsOfPacks) {
  const std::string pack = "_Z1fIJ" + repeated("i", 60) + "EEv";
  EXPECT_TRUE(itanium_size(pack + "DpT_"));
  EXPECT_FALSE(itanium_size(pack + "Dp1AIDp1BIDp1CIDpT_EEE"));
  // An element of a pack may be a pack.
  EXPECT_FALSE(itanium_size("_Z1fIJJ" + repeated("y", 500) + "EEEv" + repeated("T_", 250)));
}

// The library reads the arguments of each parameter twice: their ends are sought first.
TEST(ItaniumSize, RefusesNestedConversions) {
  const auto nested = [](int levels) {
    return "_ZN1AcvT_" + repeated("IT_", levels) + "IiE" + repeated("E", levels) + "IiEEv";
  };
  EXPECT_FALSE(itanium_size(nested(30)));
  const std::clock_t begin = std::clock();
  EXPECT_EQ(demangle(nested(60)), nested(60));
  EXPECT_LT(std::clock() - begin, CLOCKS_PER_SEC / 2);
}

TEST(ItaniumSize, RefusesLongAndDeepNames) {
  EXPECT_FALSE(itanium_size("_Z1f" + repeated("P", 1000) + "i"));
  EXPECT_FALSE(itanium_size("_Z1f" + repeated("1AI", 300) + "i" + repeated("E", 300)));
  EXPECT_FALSE(itanium_size("_Z1fI" + repeated("Xng", 300) + "E"));
  EXPECT_FALSE(itanium_size("_Z" + std::string(kLongestItaniumName, '1')));
  EXPECT_FALSE(itanium_size("_Z9999999999999999999999f"));
}

TEST(ItaniumSize, CutNamesStay) {
  const std::string name = "_ZNSt6vectorIZ1fIiEvT_EUlvE_SaIS2_EE4sizeILi3EEEDTcl1gfp_EES2_";
  ASSERT_FALSE(by_library(name).empty());
  for (std::size_t size = 0; size <= name.size(); ++size) {
    const std::string cut = name.substr(0, size);
    const std::string text = by_library(cut);
    EXPECT_EQ(demangle(cut), text.empty() || !cut.starts_with("_Z") ? cut : text);
  }
}

}  // namespace
}  // namespace ptkit::code::symbol
