// Names of many rows at once, each in its row's address space and time.
#include <gtest/gtest.h>

#include <memory>

#include "code/symbol/row_names.h"

namespace ptkit::code::symbol {
namespace {

constexpr std::uint64_t kAddress = 0x7000'0000;
constexpr std::uint64_t kSize = 0x100;

struct Mapped {
  std::string name;  // name of the file and of its only function, which covers the second half
  trace::SpaceId space;
  std::uint64_t from;
  std::uint64_t to;
};

std::shared_ptr<const trace::TraceBundle> bundle_of(const std::vector<Mapped>& mapped) {
  auto bundle = std::make_shared<trace::TraceBundle>();
  bundle->spaces.resize(4);
  for (const Mapped& one : mapped) {
    trace::CodeRegion region;
    region.space = one.space;
    region.address = kAddress;
    region.size = kSize;
    region.tsc_from = one.from;
    region.tsc_to = one.to;
    region.file = static_cast<std::int32_t>(bundle->files.size());
    region.file_offset = 0x2000;
    bundle->code.push_back(region);
    bundle->files.push_back({one.name, "", {}, {{one.name, 0x2000 + kSize / 2, kSize / 2}}});
  }
  return bundle;
}

struct Row {
  trace::SpaceId space = 1;
  std::uint64_t tsc = 0;
  std::uint32_t error = 0;
  bool time_known = true;
  std::uint64_t ip = kAddress + kSize / 2 + 3;
  bool known = true;
};

struct Found {
  std::vector<std::string> symbols;
  std::vector<std::int32_t> files;
  std::vector<std::uint64_t> symbol_offsets;
  std::vector<std::uint64_t> file_offsets;
};

Found name(const std::vector<Mapped>& mapped, const std::vector<Row>& rows, bool with_times = true) {
  const auto bundle = bundle_of(mapped);
  const Symbols symbols(bundle);
  const code::image::Image image(bundle);
  std::vector<std::uint64_t> ips;
  std::vector<std::uint64_t> tsc;
  std::vector<std::uint32_t> spaces;
  std::vector<std::uint32_t> errors;
  const auto known = std::make_unique<bool[]>(rows.size());
  const auto time_known = std::make_unique<bool[]>(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ips.push_back(rows[i].ip);
    tsc.push_back(rows[i].tsc);
    spaces.push_back(rows[i].space);
    errors.push_back(rows[i].error);
    known[i] = rows[i].known;
    time_known[i] = rows[i].time_known;
  }
  RowAddresses addresses{ips, spaces, {known.get(), rows.size()}, {}, {}, {}};
  if (with_times) {
    addresses.tsc = tsc;
    addresses.tsc_error = errors;
    addresses.time_known = {time_known.get(), rows.size()};
  }
  Found found;
  std::vector<std::int32_t> codes(rows.size());
  found.files.resize(rows.size());
  found.symbol_offsets.resize(rows.size());
  found.file_offsets.resize(rows.size());
  const auto names = name_symbols(symbols, image, addresses, {codes, found.symbol_offsets});
  for (const std::int32_t code : codes)
    found.symbols.emplace_back(code == kNoName ? "-" : names[static_cast<std::size_t>(code)]);
  name_files(symbols, image, nullptr, addresses, {found.files, found.file_offsets});
  return found;
}

using Names = std::vector<std::string>;
using Files = std::vector<std::int32_t>;

TEST(RowNames, UseTheSpaceOfTheRow) {
  const Found found = name({{"one", 1, 0, trace::kTscMax}, {"two", 2, 0, trace::kTscMax}},
                           {{.space = 1}, {.space = 2}, {.space = 3}, {.space = 1}});
  EXPECT_EQ(found.symbols, (Names{"one", "two", "-", "one"}));
  EXPECT_EQ(found.files, (Files{0, 1, -1, 0}));
  EXPECT_EQ(found.symbol_offsets, (std::vector<std::uint64_t>{3, 3, 0, 3}));
  EXPECT_EQ(found.file_offsets[0], 0x2000 + kSize / 2 + 3);
}

TEST(RowNames, UseTheTimeOfTheRow) {
  const Found found =
      name({{"old", 1, 100, 200}, {"new", 1, 200, 300}},
           {{.tsc = 150}, {.tsc = 200}, {.tsc = 199, .error = 50}, {.tsc = 90, .error = 20}, {.tsc = 300}});
  EXPECT_EQ(found.symbols, (Names{"old", "new", "old", "old", "-"}));
  EXPECT_EQ(found.files, (Files{0, 1, 0, 0, -1}));
}

TEST(RowNames, WithoutTimeUseTheLastMapping) {
  const std::vector<Mapped> mapped{{"old", 1, 100, 200}, {"new", 1, 200, 300}, {"shared", 0, 50, 60}};
  EXPECT_EQ(name(mapped, {{}, {.space = 2}}, false).symbols, (Names{"new", "shared"}));
  EXPECT_EQ(name(mapped, {{.time_known = false}, {.space = 2, .time_known = false}}).symbols,
            (Names{"new", "shared"}));
  // Rows of unknown time are decoded with the code of the beginning.
  EXPECT_EQ(name({{"begin", 1, 0, 100}, {"end", 1, 100, 200}}, {{.time_known = false}}).symbols,
            (Names{"begin"}));
}

TEST(RowNames, NoneForUnknownAddresses) {
  const Found found = name({{"one", 1, 0, trace::kTscMax}},
                           {{.known = false}, {.ip = kAddress}, {.ip = 0}, {.ip = ~std::uint64_t{0}}});
  EXPECT_EQ(found.symbols, (Names{"-", "-", "-", "-"}));
  EXPECT_EQ(found.files, (Files{-1, 0, -1, -1}));
}

TEST(RowNames, AreCorrectForManyAddressesAndViews) {
  std::vector<Mapped> mapped;
  for (std::uint64_t i = 0; i < 64; ++i)
    mapped.push_back({std::string("f").append(std::to_string(i)), 1, 10 * i, 10 * i + 10});
  std::vector<Row> rows;
  for (std::uint64_t i = 0; i < 20'000; ++i)
    rows.push_back({.tsc = i * 7 % 640, .ip = kAddress + kSize / 2 + i * 13 % (kSize / 2)});
  const Found found = name(mapped, rows);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    ASSERT_EQ(found.symbols[i], std::string("f").append(std::to_string(rows[i].tsc / 10))) << i;
    ASSERT_EQ(found.symbol_offsets[i], rows[i].ip - kAddress - kSize / 2) << i;
  }
}

TEST(RowNames, FilesCountFromTheLoadAddress) {
  auto bundle = std::make_shared<trace::TraceBundle>(*bundle_of({{"one", 1, 0, trace::kTscMax}}));
  trace::CodeRegion begin = bundle->code.front();
  begin.address = kAddress - 0x5000;
  begin.file_offset = 0;
  bundle->code.push_back(begin);
  const code::image::Image image(bundle);
  const Symbols symbols(bundle);
  const LoadAddresses loads(bundle);
  const std::vector<std::uint64_t> ips{kAddress + 3};
  const std::vector<std::uint32_t> spaces{1};
  std::vector<std::int32_t> files(1);
  std::vector<std::uint64_t> offsets(1);
  name_files(symbols, image, nullptr, {ips, spaces, {}, {}, {}, {}}, {files, offsets});
  EXPECT_EQ(offsets[0], 0x2003u);
  name_files(symbols, image, &loads, {ips, spaces, {}, {}, {}, {}}, {files, offsets});
  EXPECT_EQ(offsets[0], 0x5003u);
}

TEST(RowNames, AFileIsSeenThroughPageDumps) {
  auto bundle =
      std::make_shared<trace::TraceBundle>(*bundle_of({{"image", trace::kAnySpace, 0, trace::kTscMax}}));
  trace::CodeRegion dump;
  dump.space = 1;
  dump.address = kAddress;
  dump.bytes = trace::TraceBuffer::from_vector(std::vector<std::uint8_t>(kSize));
  dump.size = kSize;
  bundle->code.push_back(dump);
  const code::image::Image image(bundle);
  const Symbols symbols(bundle);
  const std::vector<std::uint64_t> ips{kAddress + 3, kAddress + 3};
  const std::vector<std::uint32_t> spaces{1, 2};
  std::vector<std::int32_t> files(2);
  name_files(symbols, image, nullptr, {ips, spaces, {}, {}, {}, {}}, {files, {}});
  EXPECT_EQ(files, (Files{0, 0}));
}

}  // namespace
}  // namespace ptkit::code::symbol
