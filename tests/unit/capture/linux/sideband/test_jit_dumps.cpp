// JIT code of recorded programs: jit-PID.dump files.
#include <array>
#include <filesystem>
#include <fstream>

#include "code/image/image.h"
#include "unit/capture/linux/perf/recording.h"
#include "unit/support/makers/jit_maker.h"
#include "unit/support/scratch.h"
#include "unit/support/seconds.h"
#include "unit/support/warned.h"

namespace ptkit::capture::test {
namespace {

namespace perf = formats::perf;
using formats::test::jit_header;
using formats::test::jit_load;
using formats::test::jit_move;

constexpr std::uint64_t kJitCode = 0x7000'0000;

class JitDumps : public PerfRecording {
 protected:
  // MMAP2 records of a process on CPU 0.
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
        const FakeKernel::SampleId id{one.tsc, one.pid, one.pid};
        if (one.path.empty())
          kernel.write_record(0, perf::SWITCH, 0, id, {});
        else
          kernel.write_record(0, perf::MMAP2, 0, id, mapping(one.pid, one.address, 4096, one.path));
      }
    });
    const auto result = record();
    ASSERT_TRUE(result.ok()) << result.failure().detail;
    warnings_ = result.value().warnings;
    bundle_ = std::make_shared<trace::TraceBundle>(read());
  }

  // Four bytes of code as text; empty: no code.
  [[nodiscard]] std::string code(std::size_t number, std::uint64_t address, std::uint64_t tsc) const {
    const trace::SpaceId space = bundle_->streams.at(0).switches.at(number).space;
    const code::image::Image image(bundle_);
    std::array<std::uint8_t, 4> bytes{};
    const std::size_t there = image.view(space, tsc).read(address, bytes);
    return {bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(there)};
  }

  formats::test::Scratch scratch_;
  std::vector<trace::Warning> warnings_;
  std::shared_ptr<trace::TraceBundle> bundle_;
};

TEST_F(JitDumps, SavesFunctionsFromTheirLoadTimes) {
  const std::string dump =
      scratch_.write("jit-10.dump", jit_header(1) + jit_load(200, kJitCode, 1, "first", "1111") +
                                        jit_load(300, kJitCode, 2, "second", "2222") +
                                        jit_move(400, kJitCode + 0x1000, 4, 1));
  run({{10, 0, ""}, {50, kJitCode, "//anon"}, {100, 0x5000, dump}});
  EXPECT_EQ(code(0, kJitCode, 150), "");
  EXPECT_EQ(code(0, kJitCode, 200), "1111");
  EXPECT_EQ(code(0, kJitCode, 350), "2222");
  EXPECT_EQ(code(0, kJitCode + 0x1000, 399), "");
  EXPECT_EQ(code(0, kJitCode + 0x1000, 400), "1111");
  EXPECT_TRUE(warnings_.empty());
  const auto file = std::find_if(bundle_->files.begin(), bundle_->files.end(),
                                 [&](const trace::ImageFile& one) { return one.path == dump; });
  ASSERT_NE(file, bundle_->files.end());
  ASSERT_EQ(file->symbols.size(), 2U);
  EXPECT_EQ(file->symbols[1].name, "second");
}

TEST_F(JitDumps, EndsFunctionsAtMappedFile) {
  const std::string program = std::filesystem::canonical("/bin/sh");
  const std::string dump =
      scratch_.write("jit-10.dump", jit_header(1) + jit_load(200, kJitCode, 1, "first", "1111") +
                                        jit_load(600, kJitCode, 2, "second", "2222"));
  run({{10, 0, ""},
       {100, 0x5000, dump},
       {300, kJitCode, program},
       {400, kJitCode, program + "2"},
       {500, kJitCode, "//anon"}});
  EXPECT_EQ(code(0, kJitCode, 299), "1111");
  EXPECT_NE(code(0, kJitCode, 300), "1111");
  EXPECT_EQ(code(0, kJitCode, 600), "2222");
}

// Each process has its own dump. A process without a dump is named in a warning.
TEST_F(JitDumps, SeparatesProcesses) {
  const std::string one =
      scratch_.write("jit-10.dump", jit_header(1) + jit_load(200, kJitCode, 1, "one", "1111"));
  const std::string two =
      scratch_.write("jit-11.dump", jit_header(1) + jit_load(200, kJitCode, 1, "two", "2222"));
  run({{10, 0, ""},
       {20, 0x5000, one},
       {30, 0, "", kFirst + 1},
       {40, 0x5000, two, kFirst + 1},
       {50, 0, "", kFirst + 2},
       {60, kJitCode, "//anon", kFirst + 2}});
  EXPECT_EQ(code(0, kJitCode, 200), "1111");
  EXPECT_EQ(code(1, kJitCode, 200), "2222");
  EXPECT_EQ(code(2, kJitCode, 200), "");
  EXPECT_TRUE(warns(warnings_, WarningCode::JIT_CODE_MISSING));
}

// The recorded process is this one, as its files have to belong to its user.
class PerfMaps : public JitDumps {
 protected:
  void run_with_map() {
    run({{10, 0, "", ::getpid()}, {50, kJitCode, "//anon", ::getpid()}});
    std::filesystem::remove(map_);
  }
  const std::string map_ = "/tmp/perf-" + std::to_string(::getpid()) + ".map";
};

TEST_F(PerfMaps, KeepTheirNames) {
  std::ofstream(map_) << "70000000 10 first\n70000000 10 py::second:/a.py\n70000010 0 empty\nno line\n";
  run_with_map();
  ASSERT_EQ(bundle_->names.size(), 2U);
  const trace::NameRange& last = bundle_->names[1];
  EXPECT_EQ(last.address, kJitCode);
  EXPECT_EQ(last.size, 16U);
  EXPECT_EQ(last.tsc_from, bundle_->names[0].tsc_to);
  EXPECT_TRUE(last.is_module);
  EXPECT_EQ(last.space, bundle_->streams.at(0).switches.at(0).space);
  const trace::ImageFile& file = bundle_->files.at(static_cast<std::size_t>(last.file));
  EXPECT_EQ(file.path, map_);
  ASSERT_EQ(file.symbols.size(), 2U);
  EXPECT_EQ(file.symbols[1].name, "py::second:/a.py");
  EXPECT_TRUE(warns(warnings_, WarningCode::JIT_CODE_MISSING));  // there are no bytes
}

TEST_F(PerfMaps, AreNotReadIfTheyAreLinksOrHaveSeveralNames) {
  const std::string other = scratch_.write("other.map", "70000000 10 first\n");
  std::filesystem::create_symlink(other, map_);
  run_with_map();
  EXPECT_TRUE(warns_at(warnings_, map_, WarningCode::JIT_NAMES_REFUSED));
  EXPECT_TRUE(bundle_->names.empty());
  std::ofstream(map_) << "70000000 10 first\n";
  std::filesystem::create_hard_link(map_, scratch_.at("second-name.map"));
  run_with_map();
  EXPECT_TRUE(warns_at(warnings_, map_, WarningCode::JIT_NAMES_REFUSED));
  EXPECT_TRUE(bundle_->names.empty());
}

TEST_F(PerfMaps, AreReadUpToALimit) {
  constexpr std::uintmax_t kMostBytes = std::uintmax_t{64} << 20U;
  std::ofstream(map_) << "70000000 10 first\n";
  std::filesystem::resize_file(map_, kMostBytes + 1);
  run_with_map();
  EXPECT_TRUE(warns(warnings_, WarningCode::JIT_NAMES_LIMIT));
  ASSERT_EQ(bundle_->names.size(), 1U);
}

TEST_F(JitDumps, WarnsOfDamagedDumps) {
  run({{10, 0, ""}, {100, 0x5000, scratch_.at("jit-10.dump")}, {110, kJitCode, "//anon"}});
  EXPECT_TRUE(warns_at(warnings_, scratch_.at("jit-10.dump"), WarningCode::JITDUMP_MISSING));
  EXPECT_TRUE(warns(warnings_, WarningCode::JIT_CODE_MISSING));
  const std::string good = jit_header(0) + jit_load(200, kJitCode, 1, "first", "1111");
  const std::string dump = scratch_.write("jit-10.dump", good);
  run({{10, 0, ""}, {100, 0x5000, dump}});
  EXPECT_TRUE(warns_at(warnings_, dump, WarningCode::JITDUMP_NO_TSC));
  EXPECT_EQ(code(0, kJitCode, 100), "1111");
  for (std::size_t at = 0; at < good.size(); at += 3) {
    std::string damaged = good;
    damaged[at] = '\xff';
    scratch_.write("jit-10.dump", damaged);
    run({{10, 0, ""}, {100, 0x5000, dump}});
  }
}

TEST_F(JitDumps, HandlesManyFunctionsAndFiles) {
  constexpr std::uint64_t kMany = 20'000;
  std::string contents = jit_header(1);
  for (std::uint64_t i = 0; i < kMany; ++i)
    contents +=
        jit_load(200 + i, kJitCode + i % 100 * 4096, i, std::string("f").append(std::to_string(i)), "1111");
  std::vector<Step> steps{{10, 0, ""}, {100, 0x5000, scratch_.write("jit-10.dump", contents)}};
  for (std::uint64_t i = 0; i < 4000; ++i)
    steps.push_back({150 + 7 * i, kJitCode + i % 100 * 4096, "/nowhere/" + std::to_string(i % 7)});
  EXPECT_LT(ptkit::test::seconds_of([&] { run(steps); }), 20.0);
  const auto made = std::count_if(bundle_->code.begin(), bundle_->code.end(),
                                  [](const trace::CodeRegion& one) { return one.size == 4; });
  EXPECT_EQ(made, static_cast<std::ptrdiff_t>(kMany));
}

}  // namespace
}  // namespace ptkit::capture::test
