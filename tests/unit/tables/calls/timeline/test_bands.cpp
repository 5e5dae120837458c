#include <gtest/gtest.h>

#include "tables/calls/timeline/band_lists.h"
#include "tables/calls/timeline/slice_sink.h"
#include "unit/tables/calls/machine.h"

namespace ptkit::tables::calls {
namespace {

using Kind = Band::Kind;

std::string text_of(const std::vector<Band>& bands) {
  std::string text;
  for (const Band& band : bands)
    text += (text.empty() ? "" : " ") + std::string(1, "USL"[static_cast<std::size_t>(band.kind)]) +
            std::to_string(band.begin) + "-" + std::to_string(band.end);
  return text;
}

TEST(BandLists, AreInOrderWithoutOverlaps) {
  BandLists bands;
  bands.add({10, 20, Kind::UNTRACED});
  bands.add({20, 30, Kind::SWITCHED});
  bands.add({40, 60, Kind::UNTRACED});
  bands.add({50, 55, Kind::LOST});
  bands.add({58, 58, Kind::LOST});
  EXPECT_EQ(text_of(bands.all()), "U10-20 S20-30 U40-50 L50-55 U55-60 L58-58");
}

TEST(BandLists, CloseTheShortestGapsFirst) {
  BandLists bands;
  constexpr std::uint64_t kMany = 10 * BandLists::kMost;
  for (std::uint64_t i = 0; i < kMany; ++i)
    bands.add({i * 100, i * 100 + (i % 2 == 0 ? 95 : 20), Kind::UNTRACED});
  const std::vector<Band> all = bands.all();
  EXPECT_LE(all.size(), BandLists::kMost);
  EXPECT_GE(all.size(), BandLists::kMost / 2);
  EXPECT_GE(bands.merged(), kMany - BandLists::kMost);
  EXPECT_EQ(all.front().begin, 0U);
  EXPECT_EQ(all.back().end, (kMany - 1) * 100 + 20);
  for (std::size_t i = 1; i < all.size(); ++i) EXPECT_GE(all[i].begin, all[i - 1].end + 80);
}

// A thread is switched out while no stream executes it.
TEST(BandLists, OfStreamsAreSwitchedOutTogether) {
  BandLists first;
  first.add({10, 50, Kind::SWITCHED});
  first.add({60, 70, Kind::UNTRACED});
  BandLists second;
  second.add({35, 40, Kind::SWITCHED});
  const BandLists::Part parts[] = {{&first, 0, 80}, {&second, 20, 45}};
  EXPECT_EQ(text_of(BandLists::joined(parts).all()), "S10-20 S35-40 S45-50 U60-70");
}

// Bands of a program that a machine executes.
class Bands : public ::testing::Test {
 protected:
  void go(std::uint64_t tsc, std::uint32_t error = 0) {
    position_.tsc = tsc;
    position_.tsc_error = error;
    position_.time_known = true;
    position_.instructions += 10;
    position_.stream_instructions += 10;
  }
  void branch(flow::BranchKind kind, std::uint64_t from, std::uint64_t to) {
    BranchStep step;
    step.position = position_;
    step.from_ip = from;
    step.to_ip = to;
    step.kind = kind;
    step.flags = flow::FROM_KNOWN | flow::TAKEN | flow::TO_KNOWN;
    machine_.on_branch(step);
  }
  void own(std::int64_t tid) {
    Owner owner;
    owner.pid = 1;
    owner.tid = tid;
    machine_.on_owner(owner, position_);
  }
  std::string bands_of(std::int64_t tid) {
    for (SliceSink::Thread& thread : sink_.threads()) {
      if (thread.owner.tid == tid) return text_of(thread.bands.all());
    }
    return "none";
  }

  GivenCode code_;
  SliceSink sink_{TimelineAxis::TIME, {}, 0};
  StackMachine machine_{code_, sink_};
  StreamPosition position_;
};

TEST_F(Bands, AreUntracedWhilePacketsAreDisabled) {
  go(100);
  own(1);
  branch(flow::BranchKind::CALL, kMain + 0x10, kF);
  go(120, 5);
  machine_.on_disabled(position_);
  go(200, 10);
  machine_.on_enabled(kF + 4, position_);
  go(300);
  machine_.finish(position_);
  EXPECT_EQ(bands_of(1), "U125-200");
}

TEST_F(Bands, AreSwitchedOutWhileAnotherThreadIsExecuted) {
  go(100);
  own(1);
  branch(flow::BranchKind::CALL, kMain + 0x10, kF);
  go(110);
  own(2);
  branch(flow::BranchKind::CALL, kMain + 0x10, kG);
  go(150);
  branch(flow::BranchKind::RETURN, kG + 0x10, kMain + 0x14);
  own(1);
  go(300);
  machine_.finish(position_);
  EXPECT_EQ(bands_of(1), "S110-150");
  EXPECT_EQ(bands_of(2), "S150-300");
}

TEST_F(Bands, AreLostAtGaps) {
  go(100);
  own(1);
  branch(flow::BranchKind::CALL, kMain + 0x10, kF);
  const StreamPosition last = position_;
  go(170);
  machine_.on_gap(last, position_);
  branch(flow::BranchKind::CALL, kMain + 0x10, kF);
  go(180);
  machine_.finish(position_);
  EXPECT_EQ(bands_of(1), "L100-170");
}

TEST_F(Bands, AreLostAtTheBeginOfATrace) {
  own(1);
  const StreamPosition unknown = position_;
  go(170);
  machine_.on_gap(unknown, position_);
  branch(flow::BranchKind::CALL, kMain + 0x10, kF);
  go(180);
  machine_.finish(position_);
  EXPECT_EQ(bands_of(1), "L170-170");
}

// A thread goes on with another stack: it is executed all the time.
TEST_F(Bands, DoNotShowSuspendedStacks) {
  code_.flags[kG] = CODE_SWITCH;
  go(100);
  own(1);
  branch(flow::BranchKind::CALL, kMain + 0x10, kF);
  go(110);
  branch(flow::BranchKind::CALL, kF + 0x10, kG);
  go(120);
  branch(flow::BranchKind::JUMP_INDIRECT, kG + 0x10, kH);
  go(130);
  branch(flow::BranchKind::CALL, kH + 0x10, kG);
  go(140);
  branch(flow::BranchKind::RETURN, kG + 0x14, kF + 0x14);
  go(200);
  machine_.finish(position_);
  EXPECT_EQ(bands_of(1), "");
  EXPECT_TRUE(sink_.threads().at(0).has_stacks);
  EXPECT_TRUE(sink_.threads().at(0).branches.points().empty());
}

TEST(BandsByInstructions, ArePointsOfLosses) {
  GivenCode code;
  SliceSink sink(TimelineAxis::INSTRUCTIONS, {}, 0);
  StackMachine machine(code, sink);
  StreamPosition position;
  position.instructions = position.stream_instructions = 50;
  Owner owner;
  owner.tid = 1;
  machine.on_owner(owner, position);
  position.instructions = position.stream_instructions = 70;
  machine.on_gap(position, position);
  machine.finish(position);
  EXPECT_EQ(text_of(sink.threads().at(0).bands.all()), "L20-20");
}

}  // namespace
}  // namespace ptkit::tables::calls
