// Streams that were lost as a whole: of a processor that another tracer had, for example.
#include <gtest/gtest.h>

#include "tables/columns/read/reader.h"
#include "unit/tables/columns/indexes.h"

namespace ptkit::tables::columns {
namespace {

using base::Status;

std::shared_ptr<trace::TraceBundle> lost_as_a_whole() {
  const auto bundle = recording(5, 3, true, true);
  trace::Stream lost;
  lost.losses = {{0, Status::NOT_TRACED, 300}};
  bundle->streams = {lost};
  return bundle;
}

TEST(TableReader, StreamThatIsLostIsOneGap) {
  const auto bundle = lost_as_a_whole();
  for (const TableId table : {TableId::packets, TableId::instructions, TableId::events, TableId::branches}) {
    SCOPED_TRACE(table_name(table));
    const Table read_table = read(bundle, request_of(table, true), {});
    EXPECT_EQ(read_table.rows->rows(), 0U);
    EXPECT_TRUE(read_table.errors == nullptr || read_table.errors->rows() == 0);
    ASSERT_NE(read_table.gaps, nullptr);
    ASSERT_EQ(read_table.gaps->rows(), 1U);
    ASSERT_TRUE(read_table.gaps->set_varying(kAllColumns));  // uniform columns have no cells
    EXPECT_EQ(read_table.gaps->cells<Column::gaps_cause>()[0],
              static_cast<std::uint8_t>(flow::GapCause::LOST));
    EXPECT_EQ(read_table.gaps->cells<Column::gaps_code>()[0], static_cast<std::uint8_t>(Status::NOT_TRACED));
    EXPECT_EQ(read_table.gaps->cells<Column::gaps_lost_bytes>()[0], 300U);
  }
}

}  // namespace
}  // namespace ptkit::tables::columns
