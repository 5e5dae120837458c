// Symbols that a name or pattern cannot be of, by their raw names alone.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "base/system/name_pattern.h"
#include "code/image/elf/elf.h"
#include "code/image/files/code_file.h"
#include "code/symbol/names/demangle.h"
#include "code/symbol/names/name_filter.h"
#include "code/symbol/names/short_name.h"
#include "code/symbol/table.h"

namespace ptkit::code::symbol {
namespace {

// Mangled names that demanglers write with words of their own, and in every scheme.
constexpr std::array<std::string_view, 30> kNames = {
    "_ZN3appL5parseERKNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEE",
    "_ZNSsC1Ev",
    "_ZNSolsEi",
    "_ZTVN3app5CacheE",
    "_ZTSN3app5CacheE",
    "_ZTv0_n24_N3app5CacheD1Ev",
    "_ZThn16_N3app5CacheD0Ev",
    "_ZGVZN3app4loadEvE5cache",
    "_ZGRN3app4viewE_",
    "_ZN12_GLOBAL__N_14stepEv",
    "_ZN3app3runEvENKUlvE_clEv",
    "_ZZN3app3runEvENKUlT_E0_clIiEEDaS0_",
    "_ZN3appnwEm",
    "_ZN3appdaEPv",
    "_ZN3appcvbEv",
    "_ZN3app3midIXadL_ZNS_3runEvEEEEvv",
    "_ZN3app1fILb1ELi5ELm7ELy9EEEvv",
    "_ZN3app1fB5cxx11Ev",
    "_ZN3app1fEDv4_fPDF16_",
    "_ZN3app1fIiEEDTcl1gfp_EET_",
    "_ZN3app1fEv.cold",
    "_ZN3app1fEv.part.0",
    "_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE",
    "_ZN58_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..Clone$GT$5clone17h0123456789abcdefE",
    "_RNvMs_NtCs1234_3app5cacheINtB4_5CacheReE6insert",
    "_RINvNtC3std3mem8align_ofdE",
    "_RINvC3app1fKc61_Kb1_E",
    "py::parse:/srv/app.py",
    "memcpy (avx_unaligned_erms)",
    "main.(*T[go.shape.int]).insert",
};

std::vector<std::string> forms_of(std::string_view raw) {
  const std::string name = demangle(raw);
  return {std::string(raw), name, std::string(without_arguments(name)), short_name(name)};
}

// Calls `visit` with each part of a name that has so many bytes.
template <typename Visit>
void for_each_part(const std::string& name, std::size_t size, Visit&& visit) {
  for (std::size_t at = 0; at + size <= name.size(); ++at) visit(name.substr(at, size));
}

TEST(NameFilter, AdmitsEachNameOfASymbol) {
  for (const std::string_view raw : kNames) {
    for (const std::string& form : forms_of(raw)) {
      EXPECT_TRUE(NameFilter::of_name(form).admits(raw)) << raw << ": " << form;
      for (const std::size_t size : std::array<std::size_t, 6>{1, 2, 3, 5, 8, 13}) {
        for_each_part(form, size, [&](const std::string& part) {
          if (!base::matches_pattern("*" + part + "*", form)) return;
          EXPECT_TRUE(NameFilter::of_pattern("*" + part + "*").admits(raw)) << raw << ": " << part;
        });
      }
    }
  }
}

TEST(NameFilter, AdmitsEachNameOfThisProgram) {
  trace::TraceBundle bundle;
  ASSERT_TRUE(code::image::add_elf(bundle, "/proc/self/exe", {}).ok());
  std::size_t names = 0;
  for (const auto& entry : code::image::read_symbols(bundle.files[0].contents.bytes())) {
    if (names++ % 16 != 0) continue;
    for (const std::string& form : forms_of(entry.name)) {
      EXPECT_TRUE(NameFilter::of_name(form).admits(entry.name)) << entry.name << ": " << form;
      for_each_part(form, 4, [&](const std::string& part) {
        EXPECT_TRUE(NameFilter::of_name(part).admits(entry.name)) << entry.name << ": " << part;
      });
    }
  }
  EXPECT_GT(names, 1000u);
}

TEST(NameFilter, RefusesNamesThatDoNotHaveTheLetters) {
  for (const char* pattern : {"rehash", "*rehash", "Table::rehash", "re?rehash*", "x[a-z]*"}) {
    const bool has_letters = std::string_view(pattern).find("rehash") != std::string_view::npos;
    const NameFilter filter = NameFilter::of_pattern(pattern);
    EXPECT_TRUE(filter.admits("_ZN5Table6rehashEv")) << pattern;
    EXPECT_EQ(filter.admits("_ZN5Table6insertEv"), !has_letters) << pattern;
    EXPECT_EQ(filter.admits("insert"), !has_letters) << pattern;
  }
  EXPECT_TRUE(NameFilter::of_pattern("*").admits("insert"));
  EXPECT_TRUE(NameFilter::of_pattern("[r]ehash").admits("rehash"));
  EXPECT_TRUE(NameFilter::of_pattern("\\rehash").admits("rehash"));
}

}  // namespace
}  // namespace ptkit::code::symbol
