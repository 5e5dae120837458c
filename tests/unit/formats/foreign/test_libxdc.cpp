#include <gtest/gtest.h>

#include "base/fields.h"
#include "formats/registry.h"
#include "unit/support/scratch.h"
#include "unit/support/traces/corpus.h"
#include "unit/support/warned.h"

namespace ptkit::formats {
namespace {

using test::Scratch;

std::string addresses(const std::vector<std::uint64_t>& list) {
  std::vector<std::uint8_t> bytes;
  for (const std::uint64_t address : list) base::append_le(bytes, address);
  return {bytes.begin(), bytes.end()};
}

std::string page(char fill) { return std::string(4096, fill); }

class Libxdc : public ::testing::Test {
 protected:
  void SetUp() override { scratch_.write("trace", test::small_stream()); }
  Scratch scratch_;
};

TEST_F(Libxdc, JoinsAdjacentPagesAndKeepsFirstDuplicates) {
  // An unmapped page (low bits set) takes a slot of the dump. 0x1000 comes twice.
  scratch_.write("page_cache.addr", addresses({0x1000, 0x2000, 0x5001, 0x1000, 0x3000}));
  scratch_.write("page_cache.dump", page('a') + page('b') + page('?') + page('c') + page('d'));
  const auto bundle = open(scratch_.path(), {});
  ASSERT_TRUE(bundle.ok()) << bundle.failure().detail;
  EXPECT_EQ(bundle.value().format, "libxdc");
  EXPECT_TRUE(bundle.value().warnings.empty());
  const auto& code = bundle.value().code;
  ASSERT_EQ(code.size(), 2U);
  EXPECT_EQ(code[0].address, 0x1000U);
  EXPECT_EQ(code[0].size, 8192U);
  EXPECT_EQ(code[0].bytes.bytes()[0], 'a');
  EXPECT_EQ(code[0].bytes.bytes()[4096], 'b');
  EXPECT_EQ(code[1].address, 0x3000U);
  EXPECT_EQ(code[1].bytes.bytes()[0], 'd');
}

TEST_F(Libxdc, ReadsRunsOfKafl) {
  std::filesystem::remove(scratch_.at("trace"));
  scratch_.write("pt_trace_dump_3", test::small_stream() + "\x55");
  scratch_.write("pt_trace_dump_020", test::small_stream());
  scratch_.write("page_cache.addr", addresses({0x1000}));
  scratch_.write("page_cache.dump", page('a'));
  const auto bundle = open(scratch_.path(), {});
  ASSERT_TRUE(bundle.ok()) << bundle.failure().detail;
  EXPECT_EQ(bundle.value().format, "libxdc");
  ASSERT_EQ(bundle.value().streams.size(), 2U);
  EXPECT_EQ(bundle.value().streams[0].name, "pt_trace_dump_3");
  EXPECT_EQ(bundle.value().streams[0].data.size(), test::small_stream().size());
  EXPECT_EQ(bundle.value().streams[1].name, "pt_trace_dump_020");
}

TEST(StopByte, IsRemovedUnlessItEndsAPacket) {
  const Scratch scratch;
  const auto size_of = [&](const std::string& bytes) {
    const auto bundle = open(scratch.write("trace.pt", bytes), {});
    EXPECT_TRUE(bundle.ok());
    return bundle.value().streams[0].data.size();
  };
  const std::string stream = test::small_stream();
  EXPECT_EQ(size_of(stream + "\x55"), stream.size());
  EXPECT_EQ(size_of(stream + "\x55\x55"), stream.size() + 2);
  EXPECT_EQ(size_of(stream + "\x2d\x55\x55"), stream.size() + 3);  // a TIP with two IP bytes
}

TEST_F(Libxdc, WarnsOfUnpairedPages) {
  scratch_.write("page_cache.addr", addresses({0x1000, 0x2000}));
  scratch_.write("page_cache.dump", page('a') + "torn");
  const auto bundle = open(scratch_.path(), {});
  ASSERT_TRUE(bundle.ok());
  EXPECT_EQ(bundle.value().code.size(), 1U);
  EXPECT_EQ(bundle.value().warnings.size(), 1U);
  EXPECT_TRUE(warns(bundle.value(), WarningCode::LIBXDC_PAGES_UNPAIRED, 2, 1));
}

TEST_F(Libxdc, NamesMissingAndMalformedMembers) {
  scratch_.write("page_cache.addr", addresses({0x1000}));
  auto bundle = open(scratch_.path(), {});
  ASSERT_FALSE(bundle.ok());
  EXPECT_NE(bundle.failure().detail.find("member page_cache.dump is missing"), std::string::npos);
  scratch_.write("page_cache.dump", page('a'));
  scratch_.write("page_cache.addr", "12345");
  bundle = open(scratch_.path(), {});
  ASSERT_FALSE(bundle.ok());
  EXPECT_NE(bundle.failure().detail.find("page_cache.addr: its size of 5 bytes"), std::string::npos);
  scratch_.write("trace", "");
  bundle = open(scratch_.path(), {});
  ASSERT_FALSE(bundle.ok());
  EXPECT_NE(bundle.failure().detail.find("found an empty file"), std::string::npos);
}

TEST(LibxdcCorpus, OpensEverySet) {
  if (ptkit::test::corpus().empty())
    GTEST_SKIP() << "no corpus: set PTKIT_CORPUS to the folder that holds libxdc/";
  for (const char* name : {"Unzip", "mruby", "avscript_32", "dyn_test"}) {
    const auto bundle = open(ptkit::test::corpus() + "/libxdc/" + name, {});
    ASSERT_TRUE(bundle.ok()) << bundle.failure().detail;
    EXPECT_EQ(bundle.value().format, "libxdc");
    EXPECT_FALSE(bundle.value().code.empty());
    EXPECT_TRUE(bundle.value().warnings.empty());
  }
}

}  // namespace
}  // namespace ptkit::formats
