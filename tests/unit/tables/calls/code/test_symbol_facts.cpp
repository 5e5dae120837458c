// What stacks know of the functions of a stripped PE file.
#include <gtest/gtest.h>

#include <memory>

#include "code/image/image.h"
#include "code/image/pe/pe.h"
#include "code/symbol/symbols.h"
#include "tables/calls/code/function_table.h"
#include "tables/calls/code/symbol_facts.h"
#include "unit/support/makers/pe_maker.h"
#include "unit/support/scratch.h"

namespace ptkit::tables::calls {
namespace {

TEST(SymbolFacts, KnowsBoundsOfFunctionsOfStrippedPeFiles) {
  test::ByteVector bytes = test::small_pe();
  test::put(bytes, 0x80 + 12, 0, 4);   // no COFF symbols
  test::put(bytes, 0x98 + 112, 0, 8);  // no exports
  const std::uint32_t begin = test::kTextAddress + 0x10;
  test::put_function(bytes, 1, begin + 0x40, begin + 0x50, test::put_chained(bytes, 0x1c0, begin));
  test::put_function(bytes, 2, begin + 0x60, begin + 0x70);
  const test::TemporaryFile file(bytes);
  auto bundle = std::make_shared<trace::TraceBundle>();
  ASSERT_TRUE(code::image::add_pe(*bundle, file.path(), {}).ok());
  const code::image::Image image(bundle);
  const code::symbol::Symbols symbols(bundle);
  FunctionTable functions;
  SymbolFacts facts(image, symbols, functions);
  static_cast<void>(facts.follow(trace::kAnySpace, 0));

  const std::uint64_t entry = test::kPeBase + begin;
  const CodeLocation inside = facts.at(entry + 0x1f);
  EXPECT_EQ(inside.entry, entry);
  EXPECT_TRUE(inside.is(CODE_KNOWN));
  EXPECT_FALSE(inside.is(CODE_ENTRY));
  EXPECT_FALSE(facts.at(entry + 0x20).is(CODE_KNOWN));  // after its end
  // A part that the compiler moved away has the stack of its function: a jump to it is no tail call.
  const CodeLocation part = facts.at(entry + 0x40);
  EXPECT_TRUE(part.is(CODE_COLD));
  EXPECT_EQ(part.entry, entry + 0x40);
  const CodeLocation other = facts.at(entry + 0x60);
  EXPECT_TRUE(other.is(CODE_ENTRY));
  EXPECT_FALSE(other.is(CODE_COLD));
}

}  // namespace
}  // namespace ptkit::tables::calls
