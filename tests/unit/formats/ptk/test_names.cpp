// Name ranges in bundles.
#include <gtest/gtest.h>

#include "formats/ptk/writer.h"
#include "formats/registry.h"
#include "unit/support/scratch.h"

namespace ptkit::formats {
namespace {

TEST(PtkNames, ListsOfSymbolsAreKept) {
  trace::TraceBundle bundle;
  bundle.spaces.resize(2);
  bundle.spaces[1].pid = 10;
  bundle.files = {{"nt", "", {}, {}}, {"list.nm", "", {}, {{"f", 0x1010, 8}}}};
  bundle.names = {{0, 0xfffff803'61a00000, 0x1000, 0, 0}, {1, 0x7000'1000, 0x2000, 1, 0x1000}};
  const test::Scratch scratch;
  ASSERT_TRUE(save_ptk(bundle, scratch.at("names.ptk"), {}).ok());
  const auto read = open(scratch.at("names.ptk"), {});
  ASSERT_TRUE(read.ok()) << read.failure().detail;
  EXPECT_TRUE(read.value().code.empty());
  ASSERT_EQ(read.value().names.size(), 2u);
  const trace::NameRange& range = read.value().names[1];
  EXPECT_EQ(range.space, 1u);
  EXPECT_EQ(range.address, 0x7000'1000u);
  EXPECT_EQ(range.size, 0x2000u);
  EXPECT_EQ(range.file_offset, 0x1000u);
  const trace::ImageFile& file = read.value().files[static_cast<std::size_t>(range.file)];
  EXPECT_EQ(file.path, "list.nm");
  ASSERT_EQ(file.symbols.size(), 1u);
  EXPECT_EQ(file.symbols[0].name, "f");
}

TEST(PtkNames, NamesOfJitCodeKeepTheirTimes) {
  trace::TraceBundle bundle;
  bundle.files = {{"/tmp/perf-1.map", "", {}, {{"py::f:/srv/file.py", 0x1000, 8}}}};
  bundle.names = {{0, 0x1000, 8, 0, 0x1000, 10, 20, true}};
  const test::Scratch scratch;
  ASSERT_TRUE(save_ptk(bundle, scratch.at("names.ptk"), {}).ok());
  const auto read = open(scratch.at("names.ptk"), {});
  ASSERT_TRUE(read.ok()) << read.failure().detail;
  ASSERT_EQ(read.value().names.size(), 1u);
  const trace::NameRange& range = read.value().names[0];
  EXPECT_EQ(range.tsc_from, 10u);
  EXPECT_EQ(range.tsc_to, 20u);
  EXPECT_TRUE(range.is_module);
}

TEST(PtkNames, RedactionLeavesOutPathsInNamesOfJitCode) {
  trace::TraceBundle bundle;
  bundle.files = {{"/tmp/perf-1.map",
                   "",
                   {},
                   {{"py::f:/srv/secret/file.py", 0, 8},
                    {"py::g:secret.py", 8, 8},
                    {"JS:~h /srv/secret/file.js:1:2", 16, 8},
                    {"/srv/secret", 24, 8},
                    {"plain", 32, 8},
                    {"Ljava/lang/String;::charAt", 40, 8},
                    {"Lsecret/file.js", 48, 8}}},
                  {"/srv/secret/library.so", "", {}, {{"a/secret/package.f", 0, 8}}}};
  bundle.names = {{0, 0, 56, 0, 0, 0, trace::kTscMax, true}, {0, 0x1000, 8, 1, 0}};
  const test::Scratch scratch;
  ASSERT_TRUE(save_ptk(bundle, scratch.at("names.ptk"), {.redact = true}).ok());
  const auto read = open(scratch.at("names.ptk"), {});
  ASSERT_TRUE(read.ok()) << read.failure().detail;
  std::vector<std::string> names;
  for (const trace::ImageFile& file : read.value().files) {
    for (const trace::SymbolEntry& one : file.symbols) names.push_back(one.name);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"py::f:", "py::g:", "JS:~h", "[function]", "plain",
                                      "Ljava/lang/String;::charAt", "[function]", "a/secret/package.f"}));
}

}  // namespace
}  // namespace ptkit::formats
