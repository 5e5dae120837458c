// Imports of branches in a trace's code, also where page dumps give the code.
#include <gtest/gtest.h>

#include "code/image/pe/pe.h"
#include "code/symbol/row_names.h"
#include "unit/support/makers/pe_maker.h"

namespace ptkit::code::symbol {
namespace {

using test::ByteVector;
using test::put;

constexpr std::uint64_t kLoad = 0xfffff806'85380000;
constexpr std::uint64_t kCall = kLoad + 0x1010;

std::shared_ptr<trace::TraceBundle> bundle_with_call() {
  ByteVector bytes = test::small_pe();
  test::put_imports(bytes, true);
  put(bytes, test::kTextOffset + 0x10, 0x15ff, 2);
  put(bytes, test::kTextOffset + 0x12, 0x2150 - 0x1016, 4);
  const test::TemporaryFile file(bytes);
  auto bundle = std::make_shared<trace::TraceBundle>();
  code::image::Placement placement;
  placement.load_address = kLoad;
  EXPECT_TRUE(code::image::add_pe(*bundle, file.path(), placement).ok());
  return bundle;
}

TEST(SymbolImports, NamesTheFunctionBehindTheSlot) {
  const Symbols symbols(bundle_with_call());
  EXPECT_TRUE(symbols.has_imports());
  EXPECT_EQ(symbols.import_at(0, 0, kCall).name, "ExpInterlockedPopEntrySList");
  EXPECT_EQ(symbols.import_at(0, 0, kCall + 1).name, "");
  EXPECT_EQ(symbols.import_at(0, 0, 0x1234).name, "");
}

// A bundle has the slots of files that are not at hand.
TEST(SymbolImports, AreThoseOfTheBundleWithoutTheFile) {
  const auto bundle = bundle_with_call();
  bundle->files[0].imports = code::image::Imports(bundle->files[0].contents.bytes()).encode();
  bundle->files[0].contents = {};
  const Symbols symbols(bundle);
  EXPECT_TRUE(symbols.has_imports());
  EXPECT_EQ(symbols.import_at(0, 0, kCall).name, "ExpInterlockedPopEntrySList");
  EXPECT_EQ(symbols.import_at(0, 0, kCall).module, "WS2_32.dll");
  EXPECT_EQ(symbols.import_at(0, 0, kCall + 1).name, "");
}

TEST(SymbolImports, PageDumpsGiveTheCode) {
  auto bundle = bundle_with_call();
  trace::CodeRegion page;
  page.space = 1;
  page.address = kLoad + 0x1000;
  page.size = 0x1000;
  std::vector<std::uint8_t> code(0x1000, 0x90);
  code[0x20] = 0xff;
  code[0x21] = 0x15;
  put(code, 0x22, 0x2158 - 0x1026, 4);
  page.bytes = trace::TraceBuffer::from_vector(std::move(code));
  bundle->code.push_back(page);
  const Symbols symbols(bundle);
  EXPECT_EQ(symbols.import_at(1, 0, kCall + 0x10).name, "WS2_32!Ordinal23");
  EXPECT_EQ(symbols.import_at(1, 0, kCall).name, "");
}

TEST(SymbolImports, NamesRows) {
  const auto bundle = bundle_with_call();
  const Symbols symbols(bundle);
  const code::image::Image image(bundle);
  const std::vector<std::uint64_t> ips{kCall, kCall + 2, kCall};
  const std::vector<std::uint32_t> spaces{0, 0, 0};
  std::vector<std::int32_t> codes(3);
  const auto names = name_imports(symbols, image, {ips, spaces, {}, {}, {}, {}}, {codes, {}});
  EXPECT_EQ(codes, (std::vector<std::int32_t>{0, kNoName, 0}));
  EXPECT_EQ(names, (std::vector<std::string_view>{"ExpInterlockedPopEntrySList"}));
}

TEST(SymbolImports, OtherTracesHaveNone) {
  const Symbols symbols(std::make_shared<trace::TraceBundle>());
  EXPECT_FALSE(symbols.has_imports());
  EXPECT_EQ(symbols.import_at(0, 0, 0x1000).name, "");
}

}  // namespace
}  // namespace ptkit::code::symbol
