// Structures of other sizes than ours, and options that are out of range.
#include <array>
#include <cstring>
#include <functional>
#include <string>

#include "handle.h"
#include "unit/support/traces/loop_stream.h"

namespace ptkit::api::c {
namespace {

using flow::kLoop;
using flow::loop;
using flow::Scene;

int open_status(const ptkit_options& options) {
  ptkit_coverage* coverage = nullptr;
  const int status = ptkit_coverage_open(&options, &coverage);
  EXPECT_EQ(coverage != nullptr, status == PTKIT_OK);
  ptkit_coverage_close(coverage);
  return status;
}

// Options of a header with so many bytes more.
struct NewerOptions {
  ptkit_options known;
  std::array<unsigned char, 24> members;
};

TEST(COptions, SizesOfOlderHeaders) {
  // Behind `size`, all of it is random: an older program has other variables there.
  for (std::size_t size = sizeof(std::size_t); size <= sizeof(ptkit_options); ++size) {
    ptkit_options options;
    std::memset(&options, 0xa5, sizeof options);
    std::memset(&options, 0, size);
    options.size = size;
    ASSERT_EQ(open_status(options), PTKIT_OK) << size << ": " << ptkit_failure_message();
  }
  ptkit_options options = default_options();
  options.map_size = 256;
  options.size = offsetof(ptkit_options, read_code);
  const Handle handle = open_handle(&options);
  ASSERT_EQ(ptkit_coverage_add_code(handle.get(), 0x1000, kLoop.data(), kLoop.size()), PTKIT_OK);
  std::vector<std::uint8_t> hits(256);
  EXPECT_EQ(decode(handle, loop(3), hits.data()).edges, 2u);
}

TEST(COptions, SizesOfNewerHeaders) {
  NewerOptions options{};
  options.known.size = sizeof options;
  EXPECT_EQ(open_status(options.known), PTKIT_OK);
  options.members.back() = 1;
  EXPECT_EQ(open_status(options.known), PTKIT_UNSUPPORTED);
  EXPECT_STREQ(ptkit_failure_message(),
               "options: a member after the last one is not 0, which this libptkit does not know; take a "
               "newer one");
}

// Buffers that begin without a PSB are for those who ask for it.
TEST(COptions, BuffersWithoutPsb) {
  Scene scene;
  scene.mode(64).pge(0x1000).tnt("t").end(0x1000);
  for (const bool anywhere : {false, true}) {
    ptkit_options options = default_options();
    if (anywhere) options.flags = PTKIT_BEGIN_ANYWHERE;
    const Handle handle = open_handle(&options);
    ASSERT_EQ(ptkit_coverage_add_code(handle.get(), 0x1000, kLoop.data(), kLoop.size()), PTKIT_OK);
    const ptkit_outcome outcome = decode(handle, scene.bytes());
    EXPECT_EQ(outcome.first_error, anywhere ? PTKIT_OK : PTKIT_NO_SYNC);
    EXPECT_EQ(outcome.edges != 0, anywhere);
    EXPECT_EQ(outcome.gaps, anywhere ? 0U : 1U);
  }
}

// IA32_RTIT_CTL without ADDRn_CFG: there was no filter, so no near branch disables packets.
TEST(COptions, NoFilterByRtitCtl) {
  const std::vector<std::uint8_t> code{0xff, 0xd0};  // call rax
  Scene scene;
  scene.begin().pgd();
  for (const std::uint64_t addr0_cfg : {0ULL, 1ULL << 32U}) {
    ptkit_options options = default_options();
    options.flags = PTKIT_RTIT_CTL_KNOWN;
    options.rtit_ctl = 0x2009 | addr0_cfg;
    const Handle handle = open_handle(&options);
    ASSERT_EQ(ptkit_coverage_add_code(handle.get(), 0x1000, code.data(), code.size()), PTKIT_OK);
    EXPECT_EQ(decode(handle, scene.bytes()).first_error, addr0_cfg == 0 ? PTKIT_TNT_MISMATCH : PTKIT_OK);
  }
}

TEST(COptions, OutcomesOfOtherSizes) {
  struct {
    ptkit_outcome known;
    std::uint64_t more[4];
  } outcome;
  const Handle handle = open_with_code(kLoop);
  const auto stream = loop(3);
  for (std::size_t size = sizeof(std::size_t); size <= sizeof outcome; size += 8) {
    std::memset(&outcome, 0xa5, sizeof outcome);
    outcome.known.size = size;
    ASSERT_EQ(
        ptkit_coverage_decode(handle.get(), stream.data(), stream.size(), nullptr, nullptr, &outcome.known),
        PTKIT_OK);
    EXPECT_EQ(outcome.known.size, size);
    if (size >= offsetof(ptkit_outcome, new_edges)) {
      EXPECT_EQ(outcome.known.edges, 2u);
    }
    const auto* const bytes = reinterpret_cast<const unsigned char*>(&outcome);
    for (std::size_t at = sizeof outcome.known; at < size; ++at) EXPECT_EQ(bytes[at], 0);
    for (std::size_t at = size; at < sizeof outcome; ++at) EXPECT_EQ(bytes[at], 0xa5) << at << " of " << size;
  }
  for (const std::size_t size : {std::size_t{0}, std::size_t{7}, std::size_t{5000}, SIZE_MAX}) {
    outcome.known.size = size;
    EXPECT_EQ(
        ptkit_coverage_decode(handle.get(), stream.data(), stream.size(), nullptr, nullptr, &outcome.known),
        PTKIT_BAD_CONFIG);
    EXPECT_EQ(ptkit_failure_message(),
              "outcome.size is " + std::to_string(size) + "; set it to sizeof(ptkit_outcome)");
  }
}

struct Wrong {
  const char* name;
  void (*set)(ptkit_options&);
  int status;
  const char* message;  // how it begins
};

class WrongOptions : public testing::TestWithParam<Wrong> {};

TEST_P(WrongOptions, AreNamed) {
  ptkit_options options = default_options();
  GetParam().set(options);
  EXPECT_EQ(open_status(options), GetParam().status);
  EXPECT_EQ(std::string(ptkit_failure_message()).rfind(GetParam().message, 0), 0u) << ptkit_failure_message();
}

INSTANTIATE_TEST_SUITE_P(
    All, WrongOptions,
    testing::Values(Wrong{"no_size", [](ptkit_options& o) { o.size = 0; }, PTKIT_BAD_CONFIG,
                          "options.size is 0; set it to sizeof(ptkit_options)"},
                    Wrong{"wild_size", [](ptkit_options& o) { o.size = 1U << 20U; }, PTKIT_BAD_CONFIG,
                          "options.size is 1048576"},
                    Wrong{"map_of_1000", [](ptkit_options& o) { o.map_size = 1000; }, PTKIT_BAD_CONFIG,
                          "options.map_size is 1000; it must be a power of two"},
                    Wrong{"large_map", [](ptkit_options& o) { o.map_size = std::size_t{1} << 33U; },
                          PTKIT_BAD_CONFIG, "options.map_size is 8589934592"},
                    Wrong{"flag", [](ptkit_options& o) { o.flags = 8; }, PTKIT_UNSUPPORTED,
                          "options: a flag is set"},
                    Wrong{"reserved", [](ptkit_options& o) { o.reserved[2] = 1; }, PTKIT_UNSUPPORTED,
                          "options: a reserved member is not 0"},
                    Wrong{"reserved_of_range", [](ptkit_options& o) { o.ranges[3].reserved = 1; },
                          PTKIT_UNSUPPORTED, "options: a reserved member of a range"},
                    Wrong{"range_kind", [](ptkit_options& o) { o.ranges[1].kind = 3; }, PTKIT_BAD_CONFIG,
                          "options.ranges[1].kind is 3"},
                    Wrong{"range_order",
                          [](ptkit_options& o) {
                            o.ranges[0] = {PTKIT_RANGE_STOP, 0, 2, 1};
                          },
                          PTKIT_BAD_CONFIG, "options.ranges[0]: its last address is below its first one"},
                    Wrong{"stepping", [](ptkit_options& o) { o.cpu_stepping = 256; }, PTKIT_BAD_CONFIG,
                          "options.cpu_stepping is 256"},
                    Wrong{"rtit_ctl", [](ptkit_options& o) { o.rtit_ctl = 1; }, PTKIT_BAD_CONFIG,
                          "options.rtit_ctl is not 0: set PTKIT_RTIT_CTL_KNOWN"}),
    [](const auto& one) { return std::string(one.param.name); });

ptkit_outcome outcome_with(const std::function<void(ptkit_options&)>& set,
                           const std::vector<std::uint8_t>& code, const std::vector<std::uint8_t>& stream) {
  ptkit_options options = default_options();
  set(options);
  const Handle handle = open_handle(&options);
  EXPECT_EQ(ptkit_coverage_add_code(handle.get(), 0x1000, code.data(), code.size()), PTKIT_OK);
  return decode(handle, stream);
}

TEST(COptions, ResyncAtPsbLeavesMoreOut) {
  // jz 1000; after the error, a TIP says where execution goes on.
  const auto stream = Scene().begin().tip(0x1000).tip(0x1000).fup(0x1008).tip(0x1000).tnt("t").bytes();
  EXPECT_GT(outcome_with([](ptkit_options&) {}, kLoop, stream).edges, 0u);
  EXPECT_EQ(outcome_with([](ptkit_options& o) { o.flags = PTKIT_RESYNC_AT_PSB; }, kLoop, stream).edges, 0u);
}

TEST(COptions, RangesSayWhereTracingWasOff) {
  const std::vector<std::uint8_t> code{0xe9, 0, 0, 0, 0, 0xff, 0xe0};  // jmp 1005; jmp rax
  const auto stream = Scene().begin().pgd().bytes();
  const auto filter = [](ptkit_options& o) { o.ranges[0] = {PTKIT_RANGE_FILTER, 0, 0x1000, 0x1004}; };
  EXPECT_EQ(outcome_with(filter, code, stream).instructions, 1u);
  EXPECT_EQ(outcome_with([](ptkit_options&) {}, code, stream).instructions, 2u);
}

TEST(COptions, RtitCtlSaysWhetherReturnsAreCompressed) {
  const std::vector<std::uint8_t> code{0xe8, 0x01, 0, 0, 0, 0x90, 0xc3};  // call 1006; nop; ret
  const auto stream = Scene().begin().tnt("t").end(0x1005).bytes();
  const auto disabled = [](ptkit_options& o) {
    o.flags = PTKIT_RTIT_CTL_KNOWN;
    o.rtit_ctl = std::uint64_t{1} << 11U;  // DisRETC
  };
  EXPECT_EQ(outcome_with([](ptkit_options&) {}, code, stream).edges, 2u);
  EXPECT_EQ(outcome_with(disabled, code, stream).edges, 1u);
}

TEST(COptions, ProcessorIsTaken) {
  ptkit_options options = default_options();
  options.cpu_family = 6;
  options.cpu_model = 0x8e;
  options.cpu_stepping = 255;
  const Handle handle = open_handle(&options);
  ASSERT_NE(handle, nullptr);
  EXPECT_EQ(decode(handle, loop(1)).first_error, PTKIT_NO_CODE);
}

}  // namespace
}  // namespace ptkit::api::c
