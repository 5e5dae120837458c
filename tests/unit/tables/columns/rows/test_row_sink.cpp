#include <gtest/gtest.h>

#include "tables/columns/rows/row_sink.h"
#include "tables/columns/sources/packet_source.h"

namespace ptkit::tables::columns {
namespace {

constexpr flow::BlockInsn kInsns[] = {{2, code::insn::InsnClass::OTHER, code::insn::InsnKind::OTHER},
                                      {3, code::insn::InsnClass::COND_JUMP, code::insn::InsnKind::OTHER}};

flow::Block block_at(std::uint64_t ip, std::uint64_t offset) {
  flow::Block block;
  block.span = {offset, offset};
  block.ip = ip;
  block.insns = kInsns;
  block.size = 5;
  return block;
}

flow::Branch branch(std::uint64_t from, std::uint64_t to, std::uint8_t flags) {
  flow::Branch row;
  row.from_ip = from;
  row.to_ip = to;
  row.flags = flags;
  return row;
}

constexpr std::uint8_t kBoth = flow::FROM_KNOWN | flow::TO_KNOWN;

class RowSinkTest : public ::testing::Test {
 protected:
  RowSink& begin(TableId table, const Selection& selection = {}) {
    Request request;
    request.table = table;
    request.selection = selection;
    sink_ = std::make_unique<RowSink>(request, cancelled_);
    sink_->begin_stream(3, stream_, nullptr);
    sink_->begin_slice(SIZE_MAX, SIZE_MAX);
    return *sink_;
  }

  std::atomic<bool> cancelled_{false};
  trace::Stream stream_;
  std::unique_ptr<RowSink> sink_;
};

TEST_F(RowSinkTest, BlocksBecomeInstructions) {
  RowSink& sink = begin(TableId::instructions);
  sink.on_block(block_at(0x100, 7));
  sink.on_block(block_at(0x200, 8));
  Batch& rows = *sink.main();
  ASSERT_EQ(rows.rows(), 4u);
  EXPECT_EQ(rows.cells<Column::instructions_ip>()[1], 0x102u);
  EXPECT_EQ(rows.cells<Column::instructions_ip>()[2], 0x200u);
  EXPECT_EQ(rows.cells<Column::instructions_size>()[3], 3);
  EXPECT_EQ(rows.cells<Column::instructions_offset>()[2], 8u);
  ASSERT_EQ(rows.runs().size(), 1u);
  EXPECT_EQ(rows.runs()[0].stream, 3u);
  EXPECT_EQ(rows.runs()[0].flags, 0) << "neither processor nor thread is known";
}

TEST_F(RowSinkTest, EventsHaveInstructionCounts) {
  RowSink& sink = begin(TableId::events);
  sink.on_event({});
  sink.on_block(block_at(0x100, 1));
  sink.on_error({});
  sink.on_gap({});
  sink.on_event({});
  Batch& rows = *sink.main();
  ASSERT_EQ(rows.rows(), 2u);
  EXPECT_EQ(rows.cells<Column::events_instruction>()[1], 2u);
  EXPECT_EQ(rows.cells<Column::events_order>()[1], 3u);
  EXPECT_EQ(sink.tables().errors().table()->cells<Column::errors_order>()[0], 1u);
  EXPECT_EQ(sink.tables().gaps().table()->cells<Column::gaps_order>()[0], 2u);
}

TEST_F(RowSinkTest, SelectsByAddressOfEitherEnd) {
  Selection selection;
  selection.ips = {{0x100, 0x1ff}};
  RowSink& sink = begin(TableId::branches, selection);
  sink.on_branch(branch(0x100, 0x900, kBoth));
  sink.on_branch(branch(0x900, 0x1ff, kBoth));
  sink.on_branch(branch(0x900, 0x200, kBoth));
  sink.on_branch(branch(0x900, 0x150, flow::FROM_KNOWN));  // the target is not known: its cell says nothing
  EXPECT_EQ(sink.main()->rows(), 2u);
}

TEST_F(RowSinkTest, SelectsByAddressAndSpace) {
  Selection selection;
  selection.ips = {{0x100, 0x1ff, 2}, {0x300, 0x3ff}};
  RowSink& sink = begin(TableId::branches, selection);
  for (const trace::SpaceId space : {1u, 2u}) {
    flow::Context context;
    context.space = space;
    sink.on_context(context);
    sink.on_branch(branch(0x100, 0x900, kBoth));
    sink.on_branch(branch(0x300, 0x900, kBoth));
  }
  Batch& rows = *sink.main();
  ASSERT_EQ(rows.rows(), 3u);
  EXPECT_EQ(rows.cells<Column::branches_from_ip>()[0], 0x300u);
  EXPECT_EQ(rows.cells<Column::branches_from_ip>()[1], 0x100u);
}

TEST_F(RowSinkTest, SelectsByDirectionAndThread) {
  Selection selection;
  selection.branches.not_taken = false;
  selection.tids = {7};
  RowSink& sink = begin(TableId::branches, selection);
  sink.on_branch(branch(1, 2, kBoth | flow::TAKEN));
  sink.on_context({0, 1, 0, 6, 7});
  sink.on_branch(branch(3, 4, kBoth | flow::TAKEN));
  sink.on_branch(branch(5, 6, kBoth));
  Batch& rows = *sink.main();
  ASSERT_EQ(rows.rows(), 1u);
  EXPECT_EQ(rows.cells<Column::branches_from_ip>()[0], 3u);
  EXPECT_EQ(rows.runs().back().tid, 7);
  EXPECT_EQ(rows.runs().back().flags, CPU_KNOWN | TID_KNOWN);
}

TEST_F(RowSinkTest, IsFullAfterRowsPacketsOrCancel) {
  RowSink& sink = begin(TableId::branches);
  sink.begin_slice(2, 100);
  EXPECT_FALSE(sink.full());
  sink.on_branch(branch(1, 2, kBoth));
  sink.on_branch(branch(1, 2, kBoth));
  EXPECT_TRUE(sink.full());
  sink.begin_slice(100, 2);
  EXPECT_FALSE(sink.full());
  EXPECT_TRUE(sink.full());
  sink.begin_slice(100, 100);
  cancelled_ = true;
  EXPECT_TRUE(sink.full());
}

TEST_F(RowSinkTest, IsFullAfterItWasTold) {
  RowSink& sink = begin(TableId::branches);
  sink.begin_slice(100, 100);
  EXPECT_FALSE(sink.cancelled());
  bool goes_on = true;
  const std::function<bool()> go_on = [&] { return goes_on; };
  sink.set_go_on(&go_on);
  EXPECT_FALSE(sink.cancelled());
  EXPECT_FALSE(sink.full());
  goes_on = false;
  EXPECT_TRUE(sink.cancelled());
  EXPECT_TRUE(sink.full());
}

TEST_F(RowSinkTest, CountsStraightCode) {
  RowSink& sink = begin(TableId::branches);
  EXPECT_TRUE(sink.takes_straight_code());
  sink.on_straight_code({}, 5000);
  EXPECT_EQ(sink.instructions(), 5000U);
  EXPECT_FALSE(begin(TableId::instructions).takes_straight_code());
  EXPECT_FALSE(begin(TableId::blocks).takes_straight_code());
}

TEST_F(RowSinkTest, EdgesNeedBothEnds) {
  RowSink& sink = begin(TableId::edges);
  sink.on_branch(branch(1, 2, kBoth));
  sink.on_branch(branch(1, 2, kBoth));
  sink.on_branch(branch(1, 0, flow::FROM_KNOWN));
  ASSERT_TRUE(sink.finish());
  ASSERT_EQ(sink.main()->rows(), 1u);
  EXPECT_EQ(sink.main()->cells<Column::edges_count>()[0], 2u);
}

TEST_F(RowSinkTest, PacketSourceCoversAllBytes) {
  RowSink& sink = begin(TableId::packets);
  std::vector<std::uint8_t> bytes{0x02, 0xff, 0x11};
  for (int i = 0; i < 8; ++i) bytes.insert(bytes.end(), {0x02, 0x82});
  bytes.insert(bytes.end(), {0x02, 0x23, 0x00, 0x00, 0x19});
  PacketSource source(bytes, packet::PacketDecoder(bytes), false, sink);
  EXPECT_FALSE(source.run());
  Batch& rows = *sink.main();
  ASSERT_EQ(rows.rows(), 3u);  // PSB, PSBEND, PAD
  EXPECT_EQ(rows.cells<Column::packets_offset>()[0], 3u);
  Batch& errors = *sink.tables().errors().table();
  ASSERT_EQ(errors.rows(), 2u);
  EXPECT_EQ(errors.cells<Column::errors_argument>()[0] & 0xffff, 0xff02u);
  EXPECT_EQ(errors.cells<Column::errors_code>()[1],
            static_cast<std::uint8_t>(base::Status::TRUNCATED_PACKET));
  ASSERT_EQ(sink.tables().gaps().table()->rows(), 2u);
  EXPECT_EQ(sink.tables().gaps().table()->cells<Column::gaps_end>()[0], 3u);
  EXPECT_EQ(sink.tables().gaps().table()->cells<Column::gaps_end>()[1], bytes.size());
}

}  // namespace
}  // namespace ptkit::tables::columns
