// Lists of symbols beside the symbols of files.
#include <gtest/gtest.h>

#include "code/image/image.h"
#include "code/symbol/symbols.h"

namespace ptkit::code::symbol {
namespace {

constexpr std::uint64_t kAddress = 0x7000'0000;

// A file with `f` in its first 0x100 bytes, and a list with these symbols at run-time addresses.
std::shared_ptr<trace::TraceBundle> bundle_of(std::vector<trace::SymbolEntry> listed,
                                              trace::SpaceId space = 0) {
  auto bundle = std::make_shared<trace::TraceBundle>();
  bundle->files = {{"file.so", "", {}, {{"f", 0, 0x100}}}, {"list", "", {}, std::move(listed)}};
  trace::CodeRegion region;
  region.address = kAddress;
  region.size = 0x1000;
  region.file = 0;
  bundle->code = {region};
  bundle->names = {{space, kAddress - 0x1000, 0x1000'0000, 1, kAddress - 0x1000}};
  return bundle;
}

std::string name_at(const Symbols& symbols, std::uint64_t address, trace::SpaceId space = 0) {
  const auto found = symbols.find(space, 0, address);
  return found ? std::string(found->name) : "-";
}

TEST(SymbolsOfLists, TheNearestSymbolNamesAnAddress) {
  const Symbols symbols(bundle_of({{"same", kAddress, 0}, {"inside", kAddress + 0x40, 0x10}}));
  EXPECT_EQ(name_at(symbols, kAddress), "same");  // of two that begin there, the list's
  EXPECT_EQ(name_at(symbols, kAddress + 0x4f), "inside");
  EXPECT_EQ(name_at(symbols, kAddress + 0x50), "f");
  EXPECT_EQ(symbols.lookup("inside").at(0).address, kAddress + 0x40);
  EXPECT_EQ(symbols.similar("insid", 1).at(0), "inside");
}

TEST(SymbolsOfLists, LabelsStayInTheirFileAndAreShort) {
  const Symbols symbols(bundle_of({{"outside", kAddress - 0x10, 0}, {"label", kAddress + 0x800, 0}}));
  EXPECT_EQ(name_at(symbols, kAddress - 1), "outside");
  EXPECT_EQ(name_at(symbols, kAddress + 0x700), "-");
  EXPECT_EQ(name_at(symbols, kAddress + 0xfff), "label");
  EXPECT_EQ(name_at(symbols, kAddress + 0x1000), "-");  // no code of the file
  const Symbols of_kernel(bundle_of({{"label", kAddress + 0x10'0000, 0}}));
  EXPECT_EQ(name_at(of_kernel, kAddress + 0x1f'ffff), "label");
  EXPECT_EQ(name_at(of_kernel, kAddress + 0x20'0000), "-");
  EXPECT_EQ(of_kernel.lookup("label").at(0).size, 0x10'0000u);
}

TEST(SymbolsOfLists, SpacesSeeTheirOwnLists) {
  const Symbols symbols(bundle_of({{"own", kAddress + 0x200, 0}}, 2));
  EXPECT_EQ(name_at(symbols, kAddress + 0x200, 2), "own");
  EXPECT_EQ(name_at(symbols, kAddress + 0x200, 1), "-");
  EXPECT_NE(symbols.lists_at(2, 0, kAddress), 0u);
  EXPECT_EQ(symbols.lists_at(1, 0, kAddress), 0u);
  EXPECT_EQ(symbols.lookup("own").at(0).space, 2u);
}

// Two functions of JIT code, one after the other at one address, with code in between that has no file.
TEST(SymbolsOfLists, NamesOfJitCodeHoldInTheirTime) {
  constexpr std::uint64_t kNewAddress = std::uint64_t{1} << 47U;
  auto bundle = std::make_shared<trace::TraceBundle>();
  bundle->spaces.resize(2);
  bundle->files = {{"/tmp/perf-1.map", "", {}, {{"old", kAddress, 8}, {"py::new:/a.py", kNewAddress, 8}}}};
  bundle->names = {{1, kAddress, 8, 0, kAddress, 0, 100, true},
                   {1, kAddress, 8, 0, kNewAddress, 100, trace::kTscMax, true}};
  trace::CodeRegion region;
  region.space = 1;
  region.address = kAddress;
  region.size = 8;
  bundle->code = {region};
  const Symbols symbols(bundle);
  const code::image::Image image(bundle);
  for (const auto& [tsc, name] : {std::pair(99, "old"), std::pair(100, "new (a.py)")}) {
    // Names change between views of the code.
    const code::image::CodeView& view = image.view(1, static_cast<std::uint64_t>(tsc));
    const auto found = symbols.find(1, view.valid_from(), kAddress + 4);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->name, name);
    EXPECT_EQ(found->address, kAddress);
  }
  EXPECT_EQ(symbols.module_at(1, 0, kAddress)->file, 0);
  EXPECT_NE(symbols.module_at(1, 0, kAddress)->rva, symbols.module_at(1, 100, kAddress)->rva);
  EXPECT_NE(symbols.lists_at(1, 0, kAddress), symbols.lists_at(1, 100, kAddress));
  EXPECT_EQ(symbols.lookup("new").at(0).address, kAddress);
  // Where a file is mapped, its own symbols count.
  bundle->files.push_back({"file.so", "", {}, {{"f", 0, 8}}});
  bundle->code[0].file = 1;
  EXPECT_EQ(Symbols(bundle).find(1, 0, kAddress)->name, "f");
}

TEST(SymbolsOfLists, SurvivesInconsistentRanges) {
  auto bundle = bundle_of({{"f", 0, 0}});
  bundle->names = {{0, 0x1000, 0, 1, 0},
                   {0, ~std::uint64_t{0}, 2, 1, 0},
                   {0, 0x2000, 0x10, 77, 0},
                   {0, 0x3000, 0x10, -1, 0},
                   {9, 0x4000, 0x10, 1, ~std::uint64_t{0}}};
  const Symbols symbols(bundle);
  for (const std::uint64_t address : {0x1000ULL, 0x2000ULL, 0x3000ULL, 0x4000ULL, ~0ULL})
    EXPECT_EQ(name_at(symbols, address, 9), "-");
}

}  // namespace
}  // namespace ptkit::code::symbol
