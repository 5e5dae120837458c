// Code that programs make while they are recorded, and the dumps that tell of it.
#include <array>

#include "image/image.h"
#include "perf_recording.h"
#include "unit/formats/jit_maker.h"
#include "unit/formats/scratch.h"
#include "unit/formats/seconds.h"

namespace ptkit::capture::test {
namespace {

namespace perf = formats::perf;
using formats::test::jit_header;
using formats::test::jit_load;
using formats::test::jit_move;

constexpr std::uint64_t kMade = 0x7000'0000;

class JitDumps : public PerfRecording {
 protected:
  // What a process maps on processor 0.
  struct Step {
    std::uint64_t tsc = 0;
    std::uint64_t address = 0;
    std::string path;
    int pid = kFirst;
  };
  void run(const std::vector<Step>& steps) {
    kernel_ = FakeKernel();
    kernel_.script.emplace_back([steps](FakeKernel& kernel) {
      for (const Step& one : steps) {
        const FakeKernel::Who who{one.tsc, one.pid, one.pid};
        if (one.path.empty())
          kernel.tell(0, perf::SWITCH, 0, who, {});
        else
          kernel.tell(0, perf::MMAP2, 0, who, mapping(one.pid, one.address, 4096, one.path));
      }
    });
    const auto result = record();
    ASSERT_TRUE(result.ok()) << result.failure().detail;
    warnings_ = result.value().warnings;
    bundle_ = std::make_shared<trace::TraceBundle>(read());
  }

  // Four bytes of code, as text; empty: none is known.
  [[nodiscard]] std::string code(std::size_t number, std::uint64_t address, std::uint64_t tsc) const {
    const trace::SpaceId space = bundle_->streams.at(0).switches.at(number).space;
    const image::Image image(bundle_);
    std::array<std::uint8_t, 4> bytes{};
    const std::size_t there = image.view(space, tsc).read(address, bytes);
    return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(there)};
  }

  formats::test::Scratch scratch_;
  std::vector<std::string> warnings_;
  std::shared_ptr<trace::TraceBundle> bundle_;
};

TEST_F(JitDumps, FunctionsGoToTheBundleFromTheirTimesOn) {
  const std::string dump = scratch_.write(
      "jit-10.dump", jit_header(1) + jit_load(200, kMade, 1, "first", "1111") +
                         jit_load(300, kMade, 2, "second", "2222") + jit_move(400, kMade + 0x1000, 4, 1));
  run({{10, 0, ""}, {50, kMade, "//anon"}, {100, 0x5000, dump}});
  EXPECT_EQ(code(0, kMade, 150), "");
  EXPECT_EQ(code(0, kMade, 200), "1111");
  EXPECT_EQ(code(0, kMade, 350), "2222");
  EXPECT_EQ(code(0, kMade + 0x1000, 399), "");
  EXPECT_EQ(code(0, kMade + 0x1000, 400), "1111");
  EXPECT_TRUE(warnings_.empty());
  const auto file = std::find_if(bundle_->files.begin(), bundle_->files.end(),
                                 [&](const trace::ImageFile& one) { return one.path == dump; });
  ASSERT_NE(file, bundle_->files.end());
  ASSERT_EQ(file->symbols.size(), 2U);
  EXPECT_EQ(file->symbols[1].name, "second");
}

TEST_F(JitDumps, AFileThatIsMappedOverThemEndsThem) {
  const std::string program = std::filesystem::canonical("/bin/sh");
  const std::string dump =
      scratch_.write("jit-10.dump", jit_header(1) + jit_load(200, kMade, 1, "first", "1111") +
                                        jit_load(600, kMade, 2, "second", "2222"));
  run({{10, 0, ""},
       {100, 0x5000, dump},
       {300, kMade, program},
       {400, kMade, program + "2"},
       {500, kMade, "//anon"}});
  EXPECT_EQ(code(0, kMade, 299), "1111");
  EXPECT_NE(code(0, kMade, 300), "1111");
  EXPECT_EQ(code(0, kMade, 600), "2222");
}

// Each process has its own, and one without is named.
TEST_F(JitDumps, ProcessesAreToldApart) {
  const std::string one =
      scratch_.write("jit-10.dump", jit_header(1) + jit_load(200, kMade, 1, "one", "1111"));
  const std::string two =
      scratch_.write("jit-11.dump", jit_header(1) + jit_load(200, kMade, 1, "two", "2222"));
  run({{10, 0, ""},
       {20, 0x5000, one},
       {30, 0, "", kFirst + 1},
       {40, 0x5000, two, kFirst + 1},
       {50, 0, "", kFirst + 2},
       {60, kMade, "//anon", kFirst + 2}});
  EXPECT_EQ(code(0, kMade, 200), "1111");
  EXPECT_EQ(code(1, kMade, 200), "2222");
  EXPECT_EQ(code(2, kMade, 200), "");
  EXPECT_TRUE(mentions(warnings_, "Code that programs make while they run is not in the bundle"));
}

TEST_F(JitDumps, WhatIsWrongWithThemIsSaid) {
  run({{10, 0, ""}, {100, 0x5000, scratch_.at("jit-10.dump")}, {110, kMade, "//anon"}});
  EXPECT_TRUE(mentions(warnings_, "jit-10.dump is not here any more"));
  EXPECT_TRUE(mentions(warnings_, "Code that programs make while they run is not in the bundle"));
  const std::string good = jit_header(0) + jit_load(200, kMade, 1, "first", "1111");
  const std::string dump = scratch_.write("jit-10.dump", good);
  run({{10, 0, ""}, {100, 0x5000, dump}});
  EXPECT_TRUE(mentions(warnings_, "JITDUMP_USE_ARCH_TIMESTAMP=1"));
  EXPECT_EQ(code(0, kMade, 100), "1111");
  for (std::size_t at = 0; at < good.size(); at += 3) {
    std::string damaged = good;
    damaged[at] = '\xff';
    scratch_.write("jit-10.dump", damaged);
    run({{10, 0, ""}, {100, 0x5000, dump}});
  }
}

TEST_F(JitDumps, ManyFunctionsUnderManyFiles) {
  constexpr std::uint64_t kMany = 20'000;
  std::string contents = jit_header(1);
  for (std::uint64_t i = 0; i < kMany; ++i)
    contents +=
        jit_load(200 + i, kMade + i % 100 * 4096, i, std::string("f").append(std::to_string(i)), "1111");
  std::vector<Step> steps{{10, 0, ""}, {100, 0x5000, scratch_.write("jit-10.dump", contents)}};
  for (std::uint64_t i = 0; i < 4000; ++i)
    steps.push_back({150 + 7 * i, kMade + i % 100 * 4096, "/nowhere/" + std::to_string(i % 7)});
  EXPECT_LT(formats::test::seconds_of([&] { run(steps); }), 20.0);
  const auto made = std::count_if(bundle_->code.begin(), bundle_->code.end(),
                                  [](const trace::CodeRegion& one) { return one.size == 4; });
  EXPECT_EQ(made, static_cast<std::ptrdiff_t>(kMany));
}

}  // namespace
}  // namespace ptkit::capture::test
