#include <gtest/gtest.h>

#include "columns/rows/row_cells.h"
#include "columns/rows/row_tables.h"

namespace ptkit::columns {
namespace {

Request request_for(TableId table) {
  Request request;
  request.table = table;
  return request;
}

TEST(RowTables, ErrorsAndGapsAreBesideOtherTables) {
  RowTables branches(request_for(TableId::branches));
  EXPECT_EQ(branches.find(TableId::branches), branches.main().get());
  EXPECT_EQ(branches.find(TableId::errors), branches.errors().get());
  EXPECT_EQ(branches.find(TableId::events), nullptr);
  RowTables errors(request_for(TableId::errors));
  EXPECT_EQ(errors.find(TableId::errors), errors.main().get());
  EXPECT_EQ(errors.errors(), nullptr);
  EXPECT_NE(errors.find(TableId::gaps), nullptr);
  Request alone = request_for(TableId::branches);
  alone.side_tables = false;
  EXPECT_EQ(RowTables(alone).find(TableId::gaps), nullptr);
}

TEST(RowTables, ShiftAddsToNumbersOfAllTables) {
  RowTables tables(request_for(TableId::events));
  ASSERT_TRUE(tables.room_for(*tables.main(), 1) && tables.room_for(*tables.gaps(), 1));
  add_row(*tables.main(), flow::Event{}, {3, 1}, {});
  add_row(*tables.gaps(), flow::Gap{}, {}, {4, 2}, {});
  tables.shift({100, 10});
  EXPECT_EQ(tables.main()->cells<Column::events_instruction>()[0], 103u);
  EXPECT_EQ(tables.main()->cells<Column::events_order>()[0], 11u);
  EXPECT_EQ(tables.gaps()->cells<Column::gaps_instruction>()[0], 104u);
  EXPECT_EQ(tables.gaps()->cells<Column::gaps_order>()[0], 12u);
}

TEST(RowTables, RowsOfAnotherFollow) {
  RowTables tables(request_for(TableId::branches));
  RowTables next(request_for(TableId::branches));
  const auto add = [](RowTables& to, std::uint64_t from_ip) {
    flow::Branch branch;
    branch.from_ip = from_ip;
    ASSERT_TRUE(to.room_for(*to.main(), 1));
    add_row(*to.main(), branch, {1, 0}, {});
  };
  add(tables, 1);
  for (const std::uint64_t ip : {2u, 3u, 4u}) add(next, ip);
  ASSERT_TRUE(next.room_for(*next.errors(), 1));
  add_row(*next.errors(), flow::FlowError{}, {}, {});
  ASSERT_TRUE(tables.take_rows(next, 2));
  EXPECT_EQ(tables.main()->rows(), 3u);
  ASSERT_EQ(next.main()->rows(), 1u);
  ASSERT_TRUE(tables.take_rows(next, 2) && tables.append_sides(next));
  EXPECT_EQ(next.main()->rows(), 0u);
  for (std::size_t row = 0; row < 4; ++row)
    EXPECT_EQ(tables.main()->cells<Column::branches_from_ip>()[row], row + 1);
  EXPECT_EQ(tables.errors()->rows(), 1u);
}

}  // namespace
}  // namespace ptkit::columns
