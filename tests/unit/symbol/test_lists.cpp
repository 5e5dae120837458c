// Lists of symbols beside the symbols of files.
#include <gtest/gtest.h>

#include "symbol/symbols.h"

namespace ptkit::symbol {
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
  EXPECT_EQ(symbols.space_of_lists(2, kAddress), 2u);
  EXPECT_EQ(symbols.space_of_lists(1, kAddress), trace::kAnySpace);
  EXPECT_EQ(symbols.lookup("own").at(0).space, 2u);
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
}  // namespace ptkit::symbol
