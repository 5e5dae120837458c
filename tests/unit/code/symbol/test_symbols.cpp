// Symbols at run-time addresses: of files, of bundles without files, and of this program.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "code/image/elf/elf.h"
#include "code/image/files/code_file.h"
#include "code/symbol/symbols.h"
#include "unit/support/makers/elf_maker.h"
#include "unit/support/makers/stored_functions.h"

namespace ptkit::code::symbol {
namespace {

using trace::SymbolEntry;
using trace::TraceBundle;

// A file without contents. Its 0x1000 bytes from offset 0x2000 are mapped at `address`.
std::shared_ptr<TraceBundle> bundle_of(std::vector<SymbolEntry> symbols,
                                       std::uint64_t address = 0x7000'0000) {
  auto bundle = std::make_shared<TraceBundle>();
  bundle->files.push_back({"absent.so", "", {}, std::move(symbols)});
  trace::CodeRegion region;
  region.address = address;
  region.size = 0x1000;
  region.file = 0;
  region.file_offset = 0x2000;
  bundle->code.push_back(region);
  return bundle;
}

std::string name_at(const Symbols& symbols, std::uint64_t address, trace::SpaceId space = 0,
                    std::uint64_t tsc = 0) {
  const auto found = symbols.find(space, tsc, address);
  return found ? std::string(found->name) : "-";
}

TEST(SymbolsFind, MapsFileOffsetsToAddresses) {
  const Symbols symbols(bundle_of({{"_Z3fooi", 0x2010, 0x10}, {"bar", 0x2040, 8}}));
  EXPECT_EQ(name_at(symbols, 0x7000'000f), "-");
  EXPECT_EQ(name_at(symbols, 0x7000'0010), "foo(int)");
  EXPECT_EQ(name_at(symbols, 0x7000'001f), "foo(int)");
  EXPECT_EQ(name_at(symbols, 0x7000'0020), "-");
  EXPECT_EQ(name_at(symbols, 0x7000'0047), "bar");
  EXPECT_EQ(name_at(symbols, 0x7000'1000), "-");
  EXPECT_EQ(name_at(symbols, 0x2010), "-");
  const auto found = symbols.find(0, 0, 0x7000'0018);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->raw_name, "_Z3fooi");
  EXPECT_EQ(found->address, 0x7000'0010u);
  EXPECT_EQ(found->size, 0x10u);
  EXPECT_EQ(found->file, 0);
}

TEST(SymbolsMatching, ComparesRawAndDemangledNames) {
  const Symbols symbols(bundle_of({{"_Z3fooi", 0x2010, 0x10}, {"bar", 0x2040, 8}, {"baz", 0x2050, 8}}));
  const auto names = [&](const char* pattern) {
    std::vector<std::string_view> found;
    for (const Symbol& symbol : symbols.matching(pattern)) found.push_back(symbol.name);
    return found;
  };
  using Names = std::vector<std::string_view>;
  EXPECT_EQ(names("ba*"), (Names{"bar", "baz"}));
  EXPECT_EQ(names("ba[rx]"), (Names{"bar"}));
  EXPECT_EQ(names("f?o"), (Names{"foo(int)"}));
  EXPECT_EQ(names("_Z*"), (Names{"foo(int)"}));
  EXPECT_EQ(names("foo(*"), (Names{"foo(int)"}));
  EXPECT_EQ(names("*"), (Names{"foo(int)", "bar", "baz"}));
  EXPECT_EQ(names("ba"), (Names{}));
  EXPECT_EQ(names("[f]oo(*"), (Names{"foo(int)"}));
  EXPECT_EQ(names("*int*"), (Names{"foo(int)"}));  // a word that the mangled name does not have
  ASSERT_EQ(symbols.matching("f*", false).size(), 1u);
  EXPECT_EQ(symbols.matching("f*", false)[0].address, symbols.matching("f*")[0].address);
  EXPECT_EQ(symbols.matching("f*", false)[0].name, "");
}

// ns::Map<int>::put(int), ns::Map<long>::put(int), and put(int).
TEST(SymbolsLookup, TakesShortNamesAndTheirLastParts) {
  const Symbols symbols(bundle_of({{"_ZN2ns3MapIiE3putEi", 0x2010, 0x10},
                                   {"_ZN2ns3MapIlE3putEi", 0x2020, 0x10},
                                   {"_Z3puti", 0x2030, 8}}));
  const auto addresses = [&](const char* name) {
    std::vector<std::uint64_t> found;
    for (const Symbol& symbol : symbols.lookup(name)) found.push_back(symbol.address);
    return found;
  };
  using Addresses = std::vector<std::uint64_t>;
  EXPECT_EQ(addresses("ns::Map::put"), (Addresses{0x7000'0010, 0x7000'0020}));
  EXPECT_EQ(addresses("Map::put"), (Addresses{0x7000'0010, 0x7000'0020}));
  EXPECT_EQ(addresses("ns::Map<long>::put"), (Addresses{0x7000'0020}));
  EXPECT_EQ(addresses("put"), (Addresses{0x7000'0030}));  // a function of just this name comes first
  EXPECT_EQ(addresses("ap::put"), (Addresses{}));
  EXPECT_EQ(symbols.matching("ns::*::put").size(), 2u);
}

// The C function put, put(int), and what an IFUNC chooses.
TEST(SymbolsLookup, ExactNamesComeBeforeShortOnes) {
  auto bundle = bundle_of({{"put", 0x2010, 0x10}, {"_Z3puti", 0x2020, 0x10}, {"put (avx)", 0x2030, 0x10}});
  const auto names = [&](const char* name) {
    const Symbols symbols(bundle);
    std::vector<std::string> found;
    for (const Symbol& symbol : symbols.lookup(name)) found.emplace_back(symbol.name);
    return found;
  };
  using Names = std::vector<std::string>;
  EXPECT_EQ(names("put"), (Names{"put", "put (avx)"}));
  EXPECT_EQ(names("put(int)"), (Names{"put(int)"}));
  trace::CodeRegion code = bundle->code[0];
  code.address += 0x20;
  code.file_offset += 0x20;
  code.size = 0;
  code.bytes = trace::TraceBuffer::from_vector({0x90});
  bundle->code.push_back(code);
  EXPECT_EQ(names("put"), (Names{"put", "put(int)", "put (avx)"}));  // of the exact ones, there is no code
}

// insert(int) of one file, and ns::Map<int>::insert(int) of another one.
TEST(SymbolsLookup, NamesWithoutCodeHideNoLastPartsWithCode) {
  auto bundle = bundle_of({{"_Z6inserti", 0x2010, 0x10}});
  bundle->files.push_back({"app", "", {}, {{"_ZN2ns3MapIiE6insertEi", 0x2020, 0x10}}});
  bundle->code.push_back(bundle->code[0]);
  bundle->code[1].file = 1;
  bundle->code[1].address = 0x4000'0000;
  using Addresses = std::vector<std::uint64_t>;
  const auto addresses = [&] {
    Addresses found;
    for (const Symbol& symbol : Symbols(bundle).lookup("insert")) found.push_back(symbol.address);
    return found;
  };
  const auto add_code = [&](std::uint64_t address, std::int32_t file) {
    trace::CodeRegion code;
    code.address = address;
    code.bytes = trace::TraceBuffer::from_vector({0x90});
    code.file = file;
    code.file_offset = address % 0x1000 + 0x2000;
    bundle->code.push_back(std::move(code));
  };
  EXPECT_EQ(addresses(), (Addresses{0x7000'0010}));  // no code is known at all
  add_code(0x4000'002f, 1);                          // its last byte
  EXPECT_EQ(addresses(), (Addresses{0x4000'0020, 0x7000'0010}));
  add_code(0x7000'0020, 0);  // behind the other one
  EXPECT_EQ(addresses(), (Addresses{0x4000'0020, 0x7000'0010}));
  add_code(0x7000'0018, 0);
  EXPECT_EQ(addresses(), (Addresses{0x7000'0010}));  // a function of just this name comes first
  ASSERT_EQ(Symbols(bundle).lookup("insert", {1}).size(), 1u);
  EXPECT_EQ(Symbols(bundle).lookup("insert", {1})[0].address, 0x4000'0020u);
}

TEST(SymbolsLookup, TakesTheNameOfAnIfunc) {
  const Symbols symbols(bundle_of({{"copy [resolver]", 0x2010, 0x10},
                                   {"copy (avx)", 0x2020, 0x10},
                                   {"__copy_avx", 0x2020, 0x10},
                                   {"copy (0x30)", 0x2030, 0}}));
  EXPECT_EQ(name_at(symbols, 0x7000'0020), "copy (avx)");
  ASSERT_EQ(symbols.lookup("copy").size(), 2u);
  EXPECT_EQ(symbols.lookup("copy")[0].address, 0x7000'0020u);
  EXPECT_EQ(symbols.lookup("copy")[1].address, 0x7000'0030u);
  EXPECT_EQ(symbols.lookup("__copy_avx").size(), 1u);
  EXPECT_EQ(symbols.lookup("copy [resolver]").size(), 1u);
}

TEST(SymbolsFind, LabelsExtendToTheNextSymbol) {
  const Symbols symbols(
      bundle_of({{"early", 0x1000, 0}, {"label", 0x2010, 0}, {"sized", 0x2020, 4}, {"last", 0x2030, 0}}));
  EXPECT_EQ(name_at(symbols, 0x7000'000f), "early");  // begins before the mapped part
  EXPECT_EQ(name_at(symbols, 0x7000'001f), "label");
  EXPECT_EQ(name_at(symbols, 0x7000'0020), "sized");
  EXPECT_EQ(name_at(symbols, 0x7000'0024), "-");  // after the end of a symbol with a size
  EXPECT_EQ(name_at(symbols, 0x7000'0fff), "last");
  EXPECT_EQ(symbols.find(0, 0, 0x7000'0011)->size, 0x10u);
  EXPECT_EQ(symbols.find(0, 0, 0x7000'0100)->size, 0xfd0u);  // to the end of the mapping
}

TEST(SymbolsFind, NamesFunctionsWithoutASymbolByModuleAndRva) {
  auto bundle = bundle_of({{"before", 0x2000, 0x10}, {"exact", 0x2040, 0x10}});
  bundle->files[0].path = "/usr/lib/libx.so.6 (deleted)";
  bundle->files[0].unwind = test::stored_functions(
      {{0x2008, 0x2010}, {0x2010, 0x2030}, {0x2040, 0x2060}, {0x2080, 0x2090}}, 0x1'0000);
  const Symbols symbols(bundle);
  EXPECT_EQ(name_at(symbols, 0x7000'0008), "before");
  EXPECT_EQ(name_at(symbols, 0x7000'0010), "libx.so.6!0x12010");
  EXPECT_EQ(name_at(symbols, 0x7000'002f), "libx.so.6!0x12010");
  EXPECT_EQ(name_at(symbols, 0x7000'0030), "-");
  EXPECT_EQ(name_at(symbols, 0x7000'0040), "exact");
  EXPECT_EQ(name_at(symbols, 0x7000'008f), "libx.so.6!0x12080");
  const auto found = symbols.find(0, 0, 0x7000'0018);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->raw_name, found->name);
  EXPECT_EQ(found->address, 0x7000'0010u);
  EXPECT_EQ(found->size, 0x20u);
  const auto looked_up = symbols.lookup("libx.so.6!0x12080");
  ASSERT_EQ(looked_up.size(), 1u);
  EXPECT_EQ(looked_up[0].address, 0x7000'0080u);
  EXPECT_EQ(symbols.matching("libx.so.6!*").size(), 2u);
}

TEST(SymbolsFind, LabelsEndWithTheirFunction) {
  auto bundle = bundle_of({{"start", 0x2000, 0}, {"inside", 0x2028, 0}, {"init", 0x2060, 0}});
  bundle->files[0].unwind = test::stored_functions({{0x2000, 0x2010}, {0x2020, 0x2040}, {0x2080, 0x2090}});
  const Symbols symbols(bundle);
  EXPECT_EQ(name_at(symbols, 0x7000'000f), "start");
  EXPECT_EQ(name_at(symbols, 0x7000'0010), "-");
  EXPECT_EQ(name_at(symbols, 0x7000'0027), "absent.so!0x2020");
  EXPECT_EQ(name_at(symbols, 0x7000'0028), "inside");
  EXPECT_EQ(name_at(symbols, 0x7000'0040), "-");
  EXPECT_EQ(name_at(symbols, 0x7000'007f), "init");  // without bounds: up to the next function
  EXPECT_EQ(name_at(symbols, 0x7000'0080), "absent.so!0x2080");
  EXPECT_EQ(symbols.lookup("start")[0].size, 0x10u);
  EXPECT_EQ(symbols.lookup("init")[0].size, 0x20u);
}

// Recorded code has a region of 8 bytes for each range that was executed.
std::shared_ptr<TraceBundle> executed(std::shared_ptr<TraceBundle> bundle,
                                      std::initializer_list<std::uint64_t> offsets) {
  const trace::CodeRegion whole = bundle->code[0];
  bundle->code.clear();
  for (const std::uint64_t offset : offsets) {
    trace::CodeRegion part = whole;
    part.address += offset;
    part.file_offset += offset;
    part.size = 8;
    bundle->code.push_back(part);
  }
  return bundle;
}

TEST(SymbolsFind, LabelsReachIntoOtherParts) {
  auto bundle = executed(bundle_of({{"thunk", 0x2000, 0}, {"label", 0x2040, 0}, {"", 0x2058, 0}}),
                         {0x0, 0x10, 0x40, 0x50, 0x58});
  bundle->files[0].unwind = test::stored_functions({{0x2000, 0x2020}});
  const Symbols symbols(bundle);
  EXPECT_EQ(name_at(symbols, 0x7000'0010), "thunk");
  EXPECT_EQ(symbols.find(0, 0, 0x7000'0010)->address, 0x7000'0000U);
  EXPECT_EQ(symbols.find(0, 0, 0x7000'0000)->size, 0x20U);
  EXPECT_EQ(name_at(symbols, 0x7000'0040), "label");
  EXPECT_EQ(name_at(symbols, 0x7000'0050), "label");
  EXPECT_EQ(symbols.find(0, 0, 0x7000'0050)->size, 0x18U);  // to the end of the section
  EXPECT_EQ(name_at(symbols, 0x7000'0058), "-");
}

TEST(SymbolsLookup, FindsSymbolsOfWhichTheFirstBytesAreMissing) {
  const Symbols symbols(executed(
      bundle_of({{"label", 0x2000, 0}, {"sized", 0x2020, 0x40}, {"absent", 0x2100, 8}}), {0x10, 0x40}));
  ASSERT_EQ(symbols.lookup("label").size(), 1U);
  EXPECT_EQ(symbols.lookup("label")[0].address, 0x7000'0000U);
  EXPECT_EQ(symbols.lookup("label")[0].size, 0x20U);
  ASSERT_EQ(symbols.lookup("sized").size(), 1U);
  EXPECT_EQ(symbols.lookup("sized")[0].address, 0x7000'0020U);
  EXPECT_TRUE(symbols.lookup("absent").empty());
}

TEST(SymbolsFind, PrefersInnermostSymbolsAndFirstNames) {
  const Symbols symbols(bundle_of(
      {{"outer", 0x2000, 0x100}, {"inner", 0x2010, 0x10}, {"alias", 0x2010, 0x10}, {"label", 0x2050, 0}}));
  EXPECT_EQ(name_at(symbols, 0x7000'0008), "outer");
  EXPECT_EQ(name_at(symbols, 0x7000'0018), "inner");
  EXPECT_EQ(name_at(symbols, 0x7000'0030), "outer");
  EXPECT_EQ(name_at(symbols, 0x7000'0060), "outer");  // a label inside a function does not end it
}

TEST(SymbolsFind, UsesSpacesAndTimes) {
  auto bundle = bundle_of({{"f", 0x2000, 0x1000}});
  bundle->files.push_back({"other.so", "", {}, {{"g", 0, 0x1000}}});
  trace::CodeRegion other = bundle->code[0];
  other.space = 1;
  other.file = 1;
  other.file_offset = 0;
  other.tsc_from = 100;
  bundle->code.push_back(other);
  const Symbols symbols(bundle);
  EXPECT_EQ(name_at(symbols, 0x7000'0000, 0, 200), "f");
  EXPECT_EQ(name_at(symbols, 0x7000'0000, 1, 99), "f");
  EXPECT_EQ(name_at(symbols, 0x7000'0000, 1, 100), "g");
}

TEST(SymbolsFind, FilesNameThePagesOverThem) {
  auto bundle = bundle_of({{"f", 0x2010, 0x10}});
  trace::CodeRegion page;
  page.space = 1;
  page.address = 0x7000'0000;
  page.size = 0x1000;
  page.bytes = trace::TraceBuffer::from_vector(std::vector<std::uint8_t>(0x1000));
  bundle->code.push_back(page);
  page.space = trace::kAnySpace;
  page.address = 0x7000'1000;
  bundle->code.push_back(page);
  const Symbols symbols(bundle);
  EXPECT_EQ(name_at(symbols, 0x7000'0018, 1), "f");
  EXPECT_EQ(name_at(symbols, 0x7000'0020, 1), "-");
  EXPECT_EQ(name_at(symbols, 0x7000'1010), "-");  // nothing beneath
}

TEST(SymbolsFind, SurvivesInconsistentBundles) {
  auto bundle = bundle_of({{"huge", 0x2000, ~std::uint64_t{0}}, {"wrap", ~std::uint64_t{0}, 16}},
                          ~std::uint64_t{0} - 0xfff);
  bundle->code.push_back(bundle->code[0]);
  bundle->code[1].address = 0x5000;
  bundle->code[1].file = 1;  // no such file
  const Symbols symbols(bundle);
  EXPECT_EQ(name_at(symbols, ~std::uint64_t{0}), "huge");
  EXPECT_EQ(name_at(symbols, 0x5000), "-");
  EXPECT_EQ(symbols.lookup("huge").size(), 1u);
}

TEST(SymbolsLookup, FindsRawAndDemangledNames) {
  const Symbols symbols(
      bundle_of({{"_ZN2ns3fooEi", 0x2010, 0x10}, {"_ZN2ns3fooEc", 0x2020, 0x10}, {"main", 0x2100, 0}}));
  for (const char* name : {"_ZN2ns3fooEi", "ns::foo(int)"}) {
    const auto found = symbols.lookup(name);
    ASSERT_EQ(found.size(), 1u) << name;
    EXPECT_EQ(found[0].address, 0x7000'0010u);
    EXPECT_EQ(found[0].size, 0x10u);
  }
  const auto overloads = symbols.lookup("ns::foo");
  ASSERT_EQ(overloads.size(), 2u);
  EXPECT_EQ(overloads[1].name, "ns::foo(char)");
  ASSERT_EQ(symbols.lookup("main").size(), 1u);
  EXPECT_EQ(symbols.lookup("main")[0].size, 0xf00u);  // to the end of the mapping
  EXPECT_TRUE(symbols.lookup("nothing").empty());
}

TEST(SymbolsLookup, ReturnsEachAddressOnce) {
  auto bundle = bundle_of({{"f", 0x2000, 8}});
  bundle->code.push_back(bundle->code[0]);
  for (const std::uint64_t address : {0x7000'0000u, 0x8000'0000u, 0x8000'0000u}) {
    bundle->code.push_back(bundle->code[0]);
    bundle->code.back().address = address;
    bundle->code.back().space = 1;
  }
  const auto found = Symbols(bundle).lookup("f");
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0].address, 0x7000'0000u);
  EXPECT_EQ(found[0].space, trace::kAnySpace);
  EXPECT_EQ(found[1].address, 0x7000'0000u);
  EXPECT_EQ(found[1].space, 1u);
  EXPECT_EQ(found[2].address, 0x8000'0000u);
  EXPECT_EQ(found[2].space, 1u);
}

TEST(SymbolsSimilar, RanksSimilarNamesFirst) {
  const Symbols symbols(bundle_of({{"_ZN4pool8allocateEm", 0x2000, 8},
                                   {"allocate", 0x2010, 8},
                                   {"allocator_init", 0x2020, 8},
                                   {"main", 0x2030, 8}}));
  EXPECT_EQ(symbols.similar("alocate", 10), (std::vector<std::string>{"allocate", "pool::allocate"}));
  EXPECT_EQ(symbols.similar("allocat", 1), (std::vector<std::string>{"allocate"}));
  EXPECT_EQ(symbols.similar("Main", 10), (std::vector<std::string>{"main"}));
  EXPECT_EQ(symbols.similar("tor_in", 10), (std::vector<std::string>{"allocator_init"}));
  EXPECT_TRUE(symbols.similar("completely_other", 10).empty());
  EXPECT_TRUE(symbols.similar("main", 0).empty());
}

TEST(SymbolsSimilar, ComparesAsManyLastPartsAsTheWantedNameHas) {
  const Symbols symbols(bundle_of({{"_ZN5store7HashMapIilE6insertERKiRKl", 0x2000, 8},
                                   {"_ZN5store5parseEi", 0x2010, 8},
                                   {"prune", 0x2020, 8}}));
  using Names = std::vector<std::string>;
  EXPECT_EQ(symbols.similar("HashMap::inzert", 10), Names{"store::HashMap::insert"});
  EXPECT_EQ(symbols.similar("HushMap::insert", 10), Names{"store::HashMap::insert"});
  EXPECT_EQ(symbols.similar("stor::HashMap::insert(int)", 10), Names{"store::HashMap::insert"});
  EXPECT_EQ(symbols.similar("inzert", 10), Names{"store::HashMap::insert"});
  EXPECT_EQ(symbols.similar("parze", 10), Names{"store::parse"});
  EXPECT_EQ(symbols.similar("parze(int)", 10), Names{"store::parse"});
  EXPECT_EQ(symbols.similar("prase", 10), Names{"store::parse"});  // two letters changed positions
  EXPECT_TRUE(symbols.similar("::", 10).empty());
}

extern "C" [[gnu::noinline, gnu::used]] int ptkit_test_symbol_marker(int value) { return value * 5 + 2; }

TEST(OwnProgram, HasSymbols) {
  auto bundle = std::make_shared<TraceBundle>();
  code::image::Placement placement;
  placement.load_address = 0x6000'0000'0000;
  ASSERT_TRUE(code::image::add_elf(*bundle, "/proc/self/exe", placement).ok());
  const Symbols symbols(bundle);
  const auto found = symbols.lookup("ptkit_test_symbol_marker");
  ASSERT_EQ(found.size(), 1u) << "is the test program stripped?";
  EXPECT_EQ(name_at(symbols, found[0].address + found[0].size - 1), "ptkit_test_symbol_marker");
  const auto parts = symbols.lookup("ptkit::code::symbol::demangle");  // the compiler may have split it
  EXPECT_FALSE(parts.empty());
  for (const Symbol& part : parts) {
    EXPECT_TRUE(part.name.starts_with("ptkit::code::symbol::demangle[abi:cxx11](std::basic_string_view<"))
        << part.name;
  }
  // A lookup of a name returns its address. It compares all names, so one of 16 is looked up.
  std::size_t own = 0;
  for (const auto& entry : code::image::read_symbols(bundle->files[0].contents.bytes())) {
    if (entry.size == 0 || !entry.name.starts_with("_ZN5ptkit") || own++ % 16 != 0) continue;
    for (const Symbol& symbol : symbols.lookup(entry.name)) {
      const auto there = symbols.find(0, 0, symbol.address);
      ASSERT_TRUE(there.has_value()) << entry.name;
      EXPECT_EQ(there->address, symbol.address) << entry.name;
    }
  }
  EXPECT_GT(own, 200u);
}

TEST(Symbols, AreThreadSafe) {
  auto bundle = std::make_shared<TraceBundle>();
  ASSERT_TRUE(code::image::add_elf(*bundle, "/proc/self/exe", {}).ok());
  const Symbols symbols(bundle);
  const trace::CodeRegion& code = *std::max_element(
      bundle->code.begin(), bundle->code.end(), [](const auto& a, const auto& b) { return a.size < b.size; });
  std::vector<std::vector<std::string>> names(4);
  std::vector<std::thread> threads;
  for (auto& own : names) {
    threads.emplace_back([&] {
      for (std::uint64_t at = 0; at < std::min<std::uint64_t>(code.size, 20000); at += 7) {
        own.push_back(name_at(symbols, code.address + at));
      }
    });
  }
  for (auto& thread : threads) thread.join();
  for (const auto& own : names) EXPECT_EQ(own, names[0]);
}

}  // namespace
}  // namespace ptkit::code::symbol
