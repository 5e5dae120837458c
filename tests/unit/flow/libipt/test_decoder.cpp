#include <gtest/gtest.h>

#include "flow/libipt/decoder.h"
#include "unit/flow/libipt/support.h"

namespace ptkit {
namespace {

using flow::BranchKind;
using flow::EventKind;
using test::ByteVector;
using test::StreamWriter;
using Ips = std::vector<std::uint64_t>;

constexpr std::uint64_t kBase = 0x401000;

// 401000 nop; 401001 jne 401005; 401003 nop; 401004 nop; 401005 call 40100b; 40100a ret; 40100b jmp rax;
// 40100d jmp 40100d
const ByteVector kCode = {0x90, 0x75, 0x02, 0x90, 0x90, 0xe8, 0x01, 0x00,
                          0x00, 0x00, 0xc3, 0xff, 0xe0, 0xeb, 0xfe};

StreamWriter begun() {
  StreamWriter stream;
  stream.psb().mode64().psbend().enable(kBase);
  return stream;
}

test::RecordingSink decode(const StreamWriter& stream, flow::FlowOptions options = {}) {
  const auto bundle = test::make_bundle(stream.data(), kBase, kCode);
  const code::image::Image image(bundle);
  test::RecordingSink sink;
  const auto source =
      flow::libipt::make_reference(bundle->streams[0], bundle->configuration, image, options, sink, nullptr);
  EXPECT_FALSE(source->run());
  EXPECT_EQ(source->position(), stream.size());
  EXPECT_FALSE(sink.went_back);
  return sink;
}

TEST(ReferenceDecoder, ReturnsInstructionsBranchesAndEvents) {
  StreamWriter stream = begun();
  stream.tnt("T").tip(kBase + 3).disable(kBase + 0xa);
  const auto sink = decode(stream);
  EXPECT_EQ(sink.ips,
            (Ips{kBase, kBase + 1, kBase + 5, kBase + 0xb, kBase + 3, kBase + 4, kBase + 5, kBase + 0xb}));
  EXPECT_TRUE(sink.errors.empty());
}

TEST(ReferenceDecoder, FindsTargetsAtNextInstruction) {
  StreamWriter stream = begun();
  stream.tnt("N").tip(kBase + 1).tnt("T").disable(0);
  const auto sink = decode(stream);
  ASSERT_GE(sink.branches.size(), 4U);
  EXPECT_EQ(sink.branches[0].kind, BranchKind::COND);
  EXPECT_EQ(sink.branches[0].from_ip, kBase + 1);
  EXPECT_EQ(sink.branches[0].to_ip, kBase + 3);
  EXPECT_EQ(sink.branches[0].flags & flow::TAKEN, 0);
  EXPECT_EQ(sink.branches[1].kind, BranchKind::CALL);
  EXPECT_EQ(sink.branches[1].to_ip, kBase + 0xb);
  EXPECT_EQ(sink.branches[2].kind, BranchKind::JUMP_INDIRECT);
  EXPECT_EQ(sink.branches[2].to_ip, kBase + 1);
  EXPECT_EQ(sink.branches[3].to_ip, kBase + 5);
  EXPECT_NE(sink.branches[3].flags & flow::TAKEN, 0);
}

TEST(ReferenceDecoder, BindsAsynchronousBranches) {
  StreamWriter stream = begun();
  stream.tnt("N").fup(kBase + 4).tip(kBase + 0xa).disable(kBase);
  const auto sink = decode(stream);
  std::vector<flow::Event> moves;
  for (const auto& event : sink.events) {
    // Version 2.0 reports the mode at every MODE.Exec, later versions only at a change.
    if (event.kind != EventKind::EXEC_MODE && (event.flags & flow::EV_STATUS) == 0) moves.push_back(event);
  }
  ASSERT_EQ(moves.size(), 3U);
  EXPECT_EQ(moves[0].kind, EventKind::ENABLED);
  EXPECT_EQ(moves[1].kind, EventKind::ASYNC_BRANCH);
  EXPECT_EQ(moves[1].payload, kBase + 4);
  EXPECT_EQ(moves[1].ip, kBase + 0xa);
  EXPECT_EQ(moves[2].kind, EventKind::DISABLED);
  ASSERT_GE(sink.branches.size(), 2U);
  EXPECT_EQ(sink.branches[1].kind, BranchKind::ASYNC);
  EXPECT_EQ(sink.branches[1].from_ip, kBase + 4);
}

TEST(ReferenceDecoder, ResumesAtNextPsbAfterMissingCode) {
  StreamWriter stream = begun();
  stream.tnt("T").tip(0x700000).tnt("T");
  const std::uint64_t size_without_rest = stream.size();
  stream.psb().mode64().fup(kBase).psbend().tnt("N").disable(0);
  const auto sink = decode(stream);
  ASSERT_EQ(sink.errors.size(), 1U);
  EXPECT_EQ(sink.errors[0].code, base::Status::NO_CODE);
  EXPECT_TRUE(sink.errors[0].ip_known);
  EXPECT_EQ(sink.errors[0].ip, 0x700000U);
  EXPECT_EQ(sink.errors[0].argument, 0x700000U);
  ASSERT_EQ(sink.gaps.size(), 1U);
  EXPECT_EQ(sink.gaps[0].cause, flow::GapCause::ERROR);
  EXPECT_EQ(sink.gaps[0].code, base::Status::NO_CODE);
  EXPECT_LE(sink.gaps[0].begin, sink.gaps[0].end);
  EXPECT_LE(sink.gaps[0].end, stream.size());
  EXPECT_GE(size_without_rest, sink.gaps[0].begin);
}

TEST(ReferenceDecoder, ReportsMissingPsb) {
  StreamWriter stream;
  stream.bytes({0, 0, 0, 0x02, 0x82});
  const auto sink = decode(stream);
  ASSERT_EQ(sink.errors.size(), 1U);
  EXPECT_EQ(sink.errors[0].code, base::Status::NO_SYNC);
  ASSERT_EQ(sink.gaps.size(), 1U);
  EXPECT_EQ(sink.gaps[0].cause, flow::GapCause::START);
  EXPECT_EQ(sink.gaps[0].end, stream.size());
}

TEST(ReferenceDecoder, ReturnsNothingForEmptyStream) {
  const auto sink = decode(StreamWriter{});
  EXPECT_TRUE(sink.order.empty());
}

TEST(ReferenceDecoder, StopsInLoopWithoutPackets) {
  StreamWriter stream;
  stream.psb().mode64().psbend().enable(kBase + 0xd).fup(kBase).tip(kBase);
  const auto sink = decode(stream);
  ASSERT_FALSE(sink.errors.empty());
  EXPECT_EQ(sink.errors[0].code, base::Status::INFINITE_LOOP);
  EXPECT_LT(sink.ips.size(), 1000U);
}

TEST(ReferenceDecoder, StopsAtFullSinkAndContinues) {
  StreamWriter stream = begun();
  stream.tnt("T").tip(kBase + 3).disable(kBase + 0xa);
  const auto bundle = test::make_bundle(stream.data(), kBase, kCode);
  const code::image::Image image(bundle);
  test::RecordingSink sink;
  sink.stop_after = 1;
  const auto source =
      flow::libipt::make_reference(bundle->streams[0], bundle->configuration, image, {}, sink, nullptr);
  ASSERT_TRUE(source->run());
  EXPECT_EQ(sink.ips.size(), 2U);
  sink.stop_after = SIZE_MAX;
  EXPECT_FALSE(source->run());
  EXPECT_EQ(sink.ips, decode(stream).ips);
}

TEST(ReferenceDecoder, RethrowsExceptionOfReadCallback) {
  StreamWriter stream = begun();
  stream.tnt("T").tip(0x700000).tnt("T");
  const auto bundle = test::make_bundle(stream.data(), kBase, kCode);
  const code::image::Image image(bundle,
                                 [](trace::SpaceId, std::uint64_t, std::span<std::uint8_t>) -> std::size_t {
                                   throw std::runtime_error("from the callback");
                                 });
  test::RecordingSink sink;
  const auto source =
      flow::libipt::make_reference(bundle->streams[0], bundle->configuration, image, {}, sink, nullptr);
  EXPECT_THROW(static_cast<void>(source->run()), std::runtime_error);
}

TEST(ReferenceDecoder, TerminatesOnEveryTruncationAndBitFlip) {
  StreamWriter whole = begun();
  whole.tnt("NT")
      .tip(kBase + 1)
      .tnt("T")
      .fup(kBase + 5)
      .tip(kBase)
      .psb()
      .mode64()
      .fup(kBase)
      .psbend()
      .tnt("T")
      .disable(0);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    StreamWriter part;
    for (std::size_t i = 0; i < size; ++i) part.bytes({whole.data()[i]});
    decode(part);
  }
  for (std::size_t bit = 0; bit < whole.size() * 8; ++bit) {
    StreamWriter flipped;
    for (std::size_t i = 0; i < whole.size(); ++i) {
      flipped.bytes({whole.data()[i] ^ (i == bit / 8 ? 1 << (bit % 8) : 0)});
    }
    decode(flipped);
  }
}

TEST(ReferenceLibrary, ReportsVersion) {
  EXPECT_EQ(flow::libipt::reference_version().substr(0, 2), "2.");
  EXPECT_GE(flow::libipt::reference_header_version(), 0x200U);
}

}  // namespace
}  // namespace ptkit
