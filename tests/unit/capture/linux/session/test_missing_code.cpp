// Executed code without a symbol, found in the trace of a recording.
#include "capture/linux/session/missing_code.h"
#include "unit/capture/linux/output/bundle_fixture.h"
#include "unit/capture/linux/sideband/kernel_files.h"
#include "unit/support/traces/scene.h"

namespace ptkit::capture::test {
namespace {

constexpr std::uint64_t kFilter = 0xffffffffa0000000;  // of seccomp
constexpr std::uint64_t kWork = 0xffffffff81000010;    // has a symbol
constexpr std::uint64_t kGone = kFilter + 16 * kPageBytes;
constexpr std::uint64_t kVsyscall = 0xffffffffff600400;
constexpr std::uint64_t kNotExecuted = kFilter + 32 * kPageBytes;

class MissingCode : public KernelCodeTest {
 protected:
  MissingCode() {
    write("memory", kcore(kFilter, 'f'));
    EXPECT_FALSE(kernel_.find_parts());
    EXPECT_FALSE(kernel_.save(written_.output, trace::kTscMin));
  }

  KernelCode kernel_{files_};
  BundleFixture written_;
};

TEST_F(MissingCode, IsSaved) {
  flow::Scene scene;
  scene.begin_off()
      .pge(kWork)
      .tip(0x401000)
      .tip(kFilter + 0x20)
      .ip_packet(packet::PacketKind::TIP_PGD, kNotExecuted);
  scene.fup(kVsyscall);
  written_.output.data(written_.output.stream({}), scene.bytes());
  EXPECT_FALSE(save_missing_code(written_.output, kernel_, [] { return true; }));
  const trace::TraceBundle bundle = written_.finish();
  const auto region = std::ranges::find(bundle.code, kFilter, &trace::CodeRegion::address);
  ASSERT_NE(region, bundle.code.end());
  EXPECT_EQ(region->size, kPageBytes);
  EXPECT_EQ(region->bytes.bytes()[0x20], 'f');
}

// The bytes before a loss end within a packet, to which those after it do not belong.
TEST_F(MissingCode, IsFoundBetweenLosses) {
  flow::Scene before;
  before.begin_off().pge(kWork).raw({0xcd, 0x00, 0x00});  // three bytes of a TIP packet
  flow::Scene after;
  after.raw({0x00, 0xff, 0xff, 0xff, 0xff, 0xff}).begin_off().pge(kGone).fup(kGone + 1);
  const std::uint32_t stream = written_.output.stream({});
  written_.output.data(stream, before.bytes());
  written_.output.loss(stream, 0, base::Status::BUFFER_FULL);
  written_.output.data(stream, after.bytes());
  const auto failure = save_missing_code(written_.output, kernel_, [] { return true; });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->detail,
            "1 page of code without a symbol (a filter of seccomp, for example) gone or unreadable when the "
            "recording ended: 0xffffffffa0010000");
}

TEST_F(MissingCode, SearchCanBeInterrupted) {
  flow::Scene scene;
  scene.begin_off().pge(kFilter);
  written_.output.data(written_.output.stream({}), scene.bytes());
  const auto failure = save_missing_code(written_.output, kernel_, [] { return false; });
  ASSERT_TRUE(failure);
  EXPECT_EQ(failure->detail, "the search for code without a symbol was interrupted");
}

}  // namespace
}  // namespace ptkit::capture::test
