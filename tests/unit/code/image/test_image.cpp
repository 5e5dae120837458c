// Views of address spaces: which region is visible, when, and at the limits.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <map>
#include <mutex>
#include <random>
#include <thread>

#include "code/image/image.h"
#include "unit/support/seconds.h"

namespace ptkit::code::image {
namespace {

using trace::CodeRegion;
using trace::SpaceId;
using trace::TraceBuffer;

constexpr std::uint64_t kTop = ~std::uint64_t{0};

CodeRegion region(SpaceId space, std::uint64_t address, std::vector<std::uint8_t> bytes,
                  std::uint64_t from = 0, std::uint64_t to = trace::kTscMax) {
  CodeRegion made;
  made.space = space;
  made.address = address;
  made.size = bytes.size();
  made.bytes = TraceBuffer::from_vector(std::move(bytes));
  made.tsc_from = from;
  made.tsc_to = to;
  return made;
}

Image image_of(std::vector<CodeRegion> code, ReadCallback callback = {},
               std::vector<trace::Space> spaces = {}) {
  auto bundle = std::make_shared<trace::TraceBundle>();
  bundle->code = std::move(code);
  if (!spaces.empty()) bundle->spaces = std::move(spaces);
  return Image(std::move(bundle), std::move(callback));
}

std::vector<std::uint8_t> read(const CodeView& view, std::uint64_t address, std::size_t size) {
  std::vector<std::uint8_t> bytes(size);
  bytes.resize(view.read(address, bytes));
  return bytes;
}

using Bytes = std::vector<std::uint8_t>;

TEST(CodeView, JoinsAdjacentRegions) {
  const Image image =
      image_of({region(0, 0x1000, {1, 2, 3}), region(0, 0x1003, {4, 5}), region(0, 0x1006, {6})});
  const CodeView& view = image.view(0, 0);
  EXPECT_EQ(read(view, 0x1000, 15), (Bytes{1, 2, 3, 4, 5}));
  EXPECT_EQ(read(view, 0x1002, 2), (Bytes{3, 4}));
  EXPECT_EQ(read(view, 0x1006, 15), (Bytes{6}));
  EXPECT_EQ(read(view, 0x0fff, 15), Bytes{});
  EXPECT_EQ(read(view, 0x1005, 15), Bytes{});
  EXPECT_EQ(read(view, 0x1000, 0), Bytes{});
  EXPECT_EQ(view.bytes_at(0x1001).size(), 2u);
  EXPECT_TRUE(view.bytes_at(0x1005).empty());
  EXPECT_EQ(view.provenance(0x1004).region, 1);
  EXPECT_EQ(view.provenance(0x1005).region, -1);
}

TEST(CodeView, LaterRegionsWin) {
  const Image image = image_of(
      {region(0, 0x1000, Bytes(8, 1)), region(0, 0x1002, Bytes(2, 2)), region(0, 0x1003, Bytes(9, 3))});
  const CodeView& view = image.view(0, 0);
  EXPECT_EQ(read(view, 0x1000, 32), (Bytes{1, 1, 2, 3, 3, 3, 3, 3, 3, 3, 3, 3}));
  EXPECT_EQ(view.bytes_at(0x1000).size(), 2u);
  EXPECT_EQ(view.provenance(0x1002).region, 1);
  EXPECT_EQ(view.provenance(0x1002).region_address, 0x1002u);
  EXPECT_EQ(view.provenance(0x1002).region_size, 2u);
}

TEST(CodeView, OuterRegionIsVisibleAfterAnInnerOne) {
  const Image image = image_of({region(0, 0x1000, {1, 2, 3, 4, 5, 6}), region(0, 0x1002, {9, 9})});
  EXPECT_EQ(read(image.view(0, 0), 0x1000, 15), (Bytes{1, 2, 9, 9, 5, 6}));
}

TEST(CodeView, SpaceRegionsHideSharedRegions) {
  const Image image =
      image_of({region(1, 0x1001, {7}), region(0, 0x1000, {1, 2, 3}), region(2, 0x1002, {8})});
  EXPECT_EQ(read(image.view(0, 0), 0x1000, 15), (Bytes{1, 2, 3}));
  EXPECT_EQ(read(image.view(1, 0), 0x1000, 15), (Bytes{1, 7, 3}));
  EXPECT_EQ(read(image.view(2, 0), 0x1000, 15), (Bytes{1, 2, 8}));
  EXPECT_EQ(read(image.view(99, 0), 0x1000, 15), (Bytes{1, 2, 3}));  // an unknown space
  EXPECT_EQ(image.view(2, 0).space(), 2u);
}

TEST(CodeView, RegionsWithBytesHideRegionsWithout) {
  CodeRegion missing = region(1, 0x1001, {});
  missing.size = 2;
  CodeRegion older = region(1, 0x1002, {6, 6});
  // In one space the later mapping wins, even without bytes: it has replaced the older mapping.
  const Image image = image_of({older, missing, region(0, 0x1000, {1, 2, 3}), region(1, 0x1004, {7})});
  const CodeView& view = image.view(1, 0);
  EXPECT_EQ(read(view, 0x1000, 15), (Bytes{1, 2, 3, 6, 7}));
  EXPECT_EQ(view.provenance(0x1001).region, 2);
  EXPECT_EQ(image_of({older, missing}).view(1, 0).provenance(0x1002).region, 1);
}

TEST(CodeView, ChangesWithTime) {
  const Image image =
      image_of({region(0, 0x1000, {1}), region(0, 0x1000, {2}, 100, 200), region(0, 0x1000, {3}, 200)});
  const auto at = [&](std::uint64_t tsc) { return read(image.view(0, tsc), 0x1000, 1); };
  EXPECT_EQ(at(0), Bytes{1});
  EXPECT_EQ(at(99), Bytes{1});
  EXPECT_EQ(at(100), Bytes{2});
  EXPECT_EQ(at(199), Bytes{2});
  EXPECT_EQ(at(200), Bytes{3});
  EXPECT_EQ(at(trace::kTscMax), Bytes{3});
  const CodeView& middle = image.view(0, 150);
  EXPECT_EQ(middle.valid_from(), 100u);
  EXPECT_EQ(middle.valid_to(), 200u);
  EXPECT_EQ(&middle, &image.view(0, 100));
  EXPECT_NE(middle.id(), image.view(0, 0).id());
  EXPECT_EQ(image.view(0, 200).valid_to(), trace::kTscMax);
}

// 20 000 functions, each at the address of an older one: a program with a JIT compiler.
TEST(CodeView, MemoryIsLinearInRegions) {
  constexpr std::uint64_t kFunctions = 20'000;
  std::vector<CodeRegion> code = {region(1, 0x10000, {})};
  code[0].size = kFunctions * 16;
  for (std::uint64_t i = 0; i < kFunctions; ++i) {
    code.push_back(region(1, 0x10000 + (i * 7919 % (kFunctions / 2)) * 16,
                          Bytes(16, static_cast<std::uint8_t>(i % 251)), i + 1));
  }
  const Image image = image_of(std::move(code));
  int wrong = 0;
  const double seconds = ptkit::test::seconds_of([&] {
    for (std::uint64_t i = 0; i < kFunctions; ++i) {
      const CodeView& view = image.view(1, i + 1);
      const Bytes bytes = read(view, 0x10000 + (i * 7919 % (kFunctions / 2)) * 16 + 3, 2);
      wrong += bytes == Bytes(2, static_cast<std::uint8_t>(i % 251)) ? 0 : 1;
      wrong += view.valid_from() == i + 1 ? 0 : 1;
    }
  });
  EXPECT_EQ(wrong, 0);
  EXPECT_LT(seconds, 5);  // quadratic cost would take minutes and gigabytes
}

// 20 000 processes that map 20 files each.
TEST(CodeView, IgnoresRegionsOfOtherSpaces) {
  constexpr std::uint64_t kSpaces = 20'000;
  std::vector<CodeRegion> code;
  for (std::uint64_t space = 1; space <= kSpaces; ++space) {
    for (std::uint64_t i = 0; i < 20; ++i) {
      code.push_back(region(static_cast<SpaceId>(space), 0x1000 * (i + 1), {}));
      code.back().size = 0x800;
    }
  }
  const Image image = image_of(std::move(code));
  std::size_t wrong = 0;
  const double seconds = ptkit::test::seconds_of([&] {
    for (std::uint64_t space = 1; space <= kSpaces; ++space) {
      const auto found = image.view(static_cast<SpaceId>(space), 5).provenance(0x5004).region;
      wrong += found == static_cast<std::int32_t>((space - 1) * 20 + 4) ? 0 : 1;
    }
  });
  EXPECT_EQ(wrong, 0U);
  EXPECT_LT(seconds, 5);
}

// The kernel pokes its text at thousands of addresses, all within one region.
TEST(CodeView, JoinsIntervalsOfOneVisibleRegion) {
  std::vector<CodeRegion> code = {region(0, 0x1000, Bytes(0x2000, 1))};
  for (std::uint64_t i = 0; i < 0x100; ++i) code.push_back(region(0, 0x1000 + i * 16, {9}, 100, 200));
  const Image image = image_of(std::move(code));
  EXPECT_GE(image.view(0, 5).bytes_at(0x1000).size(), 64U);  // many instructions
  EXPECT_EQ(image.view(0, 150).bytes_at(0x1001).size(), 15U);
  EXPECT_EQ(read(image.view(0, 5), 0x1000, 0x2000), Bytes(0x2000, 1));
  EXPECT_EQ(image.view(0, 250).bytes_at(0x2000).size(), 0x1000U);
}

TEST(CodeView, RegionsEndInTime) {
  const Image image = image_of({region(1, 0x1000, {1}, 100, 200)});
  EXPECT_EQ(read(image.view(1, 99), 0x1000, 1), Bytes{});
  EXPECT_EQ(read(image.view(1, 100), 0x1000, 1), Bytes{1});
  EXPECT_EQ(read(image.view(1, 200), 0x1000, 1), Bytes{});
  EXPECT_EQ(image.view(0, 150).valid_to(),
            trace::kTscMax);  // a change in another space does not end the view
}

TEST(CodeView, ReportsRegionsWithoutBytes) {
  CodeRegion missing = region(0, 0x2000, {});
  missing.size = 0x100;
  missing.file = 4;
  CodeRegion cut = region(0, 0x3000, {1, 2});
  cut.size = 16;
  const Image image = image_of({missing, cut});
  const CodeView& view = image.view(0, 0);
  EXPECT_EQ(read(view, 0x2000, 15), Bytes{});
  EXPECT_TRUE(view.bytes_at(0x2080).empty());
  EXPECT_EQ(view.provenance(0x20ff).region, 0);
  EXPECT_EQ(view.provenance(0x20ff).file, 4);
  EXPECT_EQ(view.provenance(0x2100).region, -1);
  EXPECT_EQ(read(view, 0x3000, 15), (Bytes{1, 2}));
  EXPECT_EQ(read(view, 0x3002, 15), Bytes{});
  EXPECT_EQ(view.provenance(0x3002).region, 1);
  EXPECT_FALSE(image.empty());
  EXPECT_TRUE(image_of({missing}).empty());
  EXPECT_TRUE(image_of({}).empty());
  EXPECT_FALSE(image_of({}, [](SpaceId, std::uint64_t, std::span<std::uint8_t>) { return 0u; }).empty());
}

TEST(CodeView, CoversTheLastAddress) {
  CodeRegion beyond = region(0, kTop - 7, Bytes(8, 5));
  beyond.size = 100;  // extends beyond the last address
  const Image image =
      image_of({region(0, kTop - 15, Bytes(16, 4)), beyond, region(0, kTop, {6}), region(0, 0, {7})});
  const CodeView& view = image.view(0, 0);
  EXPECT_EQ(read(view, kTop - 15, 64), (Bytes{4, 4, 4, 4, 4, 4, 4, 4, 5, 5, 5, 5, 5, 5, 5, 6}));
  EXPECT_EQ(read(view, kTop, 15), Bytes{6});
  EXPECT_EQ(view.bytes_at(kTop).size(), 1u);
  EXPECT_EQ(read(view, 0, 15), Bytes{7});
}

TEST(CodeView, AgreesWithAByteByByteModel) {
  std::mt19937 random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<CodeRegion> code;
    for (unsigned i = 0; i < 1 + random() % 12; ++i) {
      const std::uint64_t from = random() % 4;
      code.push_back(region(static_cast<SpaceId>(random() % 3), 0x1000 + random() % 64,
                            Bytes(1 + random() % 24, static_cast<std::uint8_t>(i)), from,
                            from + random() % 4));
    }
    const Image image = image_of(code);
    for (SpaceId space = 0; space < 3; ++space) {
      for (std::uint64_t tsc = 0; tsc < 8; ++tsc) {
        std::map<std::uint64_t, int> painted;
        for (const SpaceId owner : {SpaceId{0}, space}) {
          for (std::size_t i = 0; i < code.size(); ++i) {
            if (code[i].space != owner || tsc < code[i].tsc_from || tsc >= code[i].tsc_to) continue;
            for (std::uint64_t at = 0; at < code[i].size; ++at)
              painted[code[i].address + at] = static_cast<int>(i);
          }
        }
        const CodeView& view = image.view(space, tsc);
        ASSERT_LE(view.valid_from(), tsc);
        ASSERT_GT(view.valid_to(), tsc);
        for (std::uint64_t at = 0xff0; at < 0x1070; ++at) {
          const auto found = painted.find(at);
          const int expected = found == painted.end() ? -1 : found->second;
          ASSERT_EQ(view.provenance(at).region, expected) << std::hex << at;
          const Bytes bytes = read(view, at, 1);
          ASSERT_EQ(bytes.empty() ? -1 : bytes[0], expected);
        }
      }
    }
  }
}

TEST(ReadCallback, SuppliesBytesOutsideRegions) {
  std::vector<std::uint64_t> asked;
  const auto callback = [&asked](SpaceId space, std::uint64_t address,
                                 std::span<std::uint8_t> out) -> std::size_t {
    asked.push_back(address);
    if (address < 0x1000 || address >= 0x1804) return 0;
    const std::size_t size = std::min<std::size_t>(out.size(), 0x1804 - address);
    for (std::size_t i = 0; i < size; ++i) out[i] = static_cast<std::uint8_t>(0x40 + space);
    return size;
  };
  const Image image = image_of({region(0, 0x1002, {1, 2})}, callback);
  const CodeView& view = image.view(5, 0);
  EXPECT_TRUE(view.bytes_at(0x1000).empty());  // read() was not called yet
  EXPECT_EQ(read(view, 0x1000, 6), (Bytes{0x45, 0x45, 1, 2, 0x45, 0x45}));
  EXPECT_EQ(asked, (std::vector<std::uint64_t>{0x1000}));
  EXPECT_EQ(view.bytes_at(0x1000).size(), 2u);  // up to the region
  EXPECT_EQ(view.bytes_at(0x1004).size(), 0x800u);
  EXPECT_EQ(read(view, 0x1802, 15).size(), 2u);
  EXPECT_EQ(view.provenance(0x1000).region, -1);
  EXPECT_EQ(read(image.view(6, 0), 0x1000, 1), Bytes{0x46});  // spaces do not share
  EXPECT_EQ(read(view, 0x1004, 4), (Bytes{0x45, 0x45, 0x45, 0x45}));
}

TEST(ReadCallback, SuppliesMemoryThatBeginsInsideAPage) {
  const auto callback = [](SpaceId, std::uint64_t address, std::span<std::uint8_t> out) -> std::size_t {
    if (address < 0x1800) return 0;
    std::fill(out.begin(), out.end(), std::uint8_t{9});
    return out.size() + 100;  // claims more bytes than `out` has
  };
  const Image image = image_of({}, callback);
  EXPECT_EQ(read(image.view(0, 0), 0x1900, 3), (Bytes{9, 9, 9}));
  EXPECT_EQ(read(image.view(0, 0), 0x1800, 3), (Bytes{9, 9, 9}));
  EXPECT_EQ(read(image.view(0, 0), 0x17ff, 3), Bytes{});
  EXPECT_EQ(read(image.view(0, 0), kTop - 1, 15), (Bytes{9, 9}));
}

TEST(ReadCallback, SuppliesBytesOfMissingFiles) {
  CodeRegion missing = region(0, 0x2000, {});
  missing.size = 0x100;
  const Image image = image_of({missing}, [](SpaceId, std::uint64_t address, std::span<std::uint8_t> out) {
    out[0] = 0xC3;
    return address == 0x2000 ? std::size_t{1} : std::size_t{0};
  });
  EXPECT_EQ(read(image.view(0, 0), 0x2000, 15), Bytes{0xC3});
}

TEST(ReadCallback, IsThreadSafe) {
  std::atomic<int> calls = 0;
  const Image image = image_of({region(0, 0, {1}, 5, 6)},
                               [&calls](SpaceId, std::uint64_t address, std::span<std::uint8_t> out) {
                                 ++calls;
                                 for (std::size_t i = 0; i < out.size(); ++i) {
                                   out[i] = static_cast<std::uint8_t>((address + i) * 7);
                                 }
                                 return out.size();
                               });
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) {
    threads.emplace_back([&, seed] {
      std::mt19937 random(seed);
      for (int i = 0; i < 5000; ++i) {
        const std::uint64_t address = 0x1000 + random() % 0x8000;
        const CodeView& view = image.view(static_cast<SpaceId>(random() % 3), random() % 10);
        std::array<std::uint8_t, 15> bytes{};
        if (view.read(address, bytes) != bytes.size()) ++wrong;
        for (std::size_t at = 0; at < bytes.size(); ++at) {
          if (bytes[at] != static_cast<std::uint8_t>((address + at) * 7)) ++wrong;
        }
        const base::Bytes direct = view.bytes_at(address);
        if (direct.empty() || direct[0] != bytes[0]) ++wrong;
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(calls, 3 * 9 * 4);  // pages are cached
}

TEST(ImageSpaces, FoundByCr3) {
  std::vector<trace::Space> spaces(3);
  spaces[1].cr3 = 0x1234'5000;
  spaces[1].cr3_known = true;
  spaces[2].cr3 = 0;
  const Image image = image_of({}, {}, spaces);
  EXPECT_EQ(image.space_of_cr3(0x1234'5000, 7), 1u);
  EXPECT_EQ(image.space_of_cr3(0x8000'0000'1234'5003, 7), 1u);  // no-flush bit and PCID
  EXPECT_EQ(image.space_of_cr3(0x1234'6000, 7), 7u);
  EXPECT_EQ(image.space_of_cr3(0, 7), 7u);  // an unknown CR3 matches no space
}

TEST(Image, CopiesShareTheirViews) {
  auto original = std::make_unique<Image>(image_of({region(0, 0x1000, {1})}));
  const Image copy = *original;
  const CodeView& view = original->view(0, 0);
  original.reset();
  EXPECT_EQ(&copy.view(0, 0), &view);
  EXPECT_EQ(read(view, 0x1000, 1), Bytes{1});
}

}  // namespace
}  // namespace ptkit::code::image
