#include <gtest/gtest.h>

#include "tables/columns/rows/row_cells.h"
#include "tables/columns/rows/row_tables.h"

namespace ptkit::tables::columns {
namespace {

Request request_for(TableId table) {
  Request request;
  request.table = table;
  return request;
}

TEST(RowTables, ErrorsAndGapsAreBesideOtherTables) {
  RowTables branches(request_for(TableId::branches));
  EXPECT_EQ(branches.find(TableId::branches), branches.main().get());
  EXPECT_EQ(branches.find(TableId::errors), branches.errors().table());
  EXPECT_EQ(branches.find(TableId::events), nullptr);
  RowTables errors(request_for(TableId::errors));
  EXPECT_EQ(errors.find(TableId::errors), errors.main().get());
  EXPECT_EQ(errors.errors().table(), nullptr);
  EXPECT_NE(errors.find(TableId::gaps), nullptr);
  Request alone = request_for(TableId::branches);
  alone.side_tables = false;
  EXPECT_EQ(RowTables(alone).find(TableId::gaps), nullptr);
}

TEST(RowTables, ShiftAddsToNumbersOfAllTables) {
  RowTables tables(request_for(TableId::events));
  ASSERT_TRUE(tables.room_for(*tables.main(), 1) && tables.room_for_side_row(*tables.gaps().table()));
  add_row(*tables.main(), flow::Event{}, {3, 1}, {});
  add_row(*tables.gaps().table(), flow::Gap{}, {}, {4, 2}, {});
  tables.shift({100, 10});
  EXPECT_EQ(tables.main()->cells<Column::events_instruction>()[0], 103u);
  EXPECT_EQ(tables.main()->cells<Column::events_order>()[0], 11u);
  EXPECT_EQ(tables.gaps().table()->cells<Column::gaps_instruction>()[0], 104u);
  EXPECT_EQ(tables.gaps().table()->cells<Column::gaps_order>()[0], 12u);
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
  ASSERT_TRUE(tables.take_rows(next, 2));
  EXPECT_EQ(tables.main()->rows(), 3u);
  ASSERT_EQ(next.main()->rows(), 1u);
  ASSERT_TRUE(tables.take_rows(next, 2));
  EXPECT_EQ(next.main()->rows(), 0u);
  for (std::size_t row = 0; row < 4; ++row)
    EXPECT_EQ(tables.main()->cells<Column::branches_from_ip>()[row], row + 1);
}

TEST(RowTables, ErrorsAndGapsLeaveWithTheNextRow) {
  RowTables tables(request_for(TableId::branches));
  RowTables next(request_for(TableId::branches));
  const auto add = [](RowTables& to, unsigned rows) {
    for (unsigned i = 0; i < rows; ++i) {
      ASSERT_TRUE(to.room_for(*to.main(), 1));
      add_row(*to.main(), flow::Branch{}, {}, {});
    }
  };
  const auto add_error = [](RowTables& to) {
    ASSERT_TRUE(to.room_for_side_row(*to.errors().table()));
    add_row(*to.errors().table(), flow::FlowError{}, {}, {});
  };
  const auto rows_of = [](const std::unique_ptr<Batch>& side) { return side == nullptr ? 0 : side->rows(); };
  add(tables, 1);
  add_error(tables);  // before the second row
  add(next, 2);
  add_error(next);  // before the fourth
  add(next, 2);
  ASSERT_TRUE(next.room_for_side_row(*next.gaps().table()));
  add_row(*next.gaps().table(), flow::Gap{}, {}, {}, {});  // at the end
  ASSERT_TRUE(tables.take_rows(next, 1));
  EXPECT_EQ(tables.errors().table()->rows(), 1u) << "the second error comes after a row that was not moved";
  ASSERT_TRUE(tables.take_rows(next, 1));
  EXPECT_EQ(tables.errors().table()->rows(), 2u);
  ASSERT_TRUE(tables.take_rows(next, 2));
  EXPECT_EQ(tables.gaps().table()->rows(), 1u);
  EXPECT_FALSE(tables.has_error_rows());
  tables.rows_left(1, false);
  EXPECT_FALSE(tables.has_error_rows()) << "the first error comes with the second row";
  tables.rows_left(1, false);
  EXPECT_TRUE(tables.has_error_rows());
  EXPECT_EQ(rows_of(tables.take_errors()), 1u);
  EXPECT_FALSE(tables.has_error_rows());
  tables.rows_left(3, false);
  EXPECT_EQ(rows_of(tables.take_errors()), 1u);
  EXPECT_FALSE(tables.has_error_rows());
  tables.rows_left(0, true);
  EXPECT_EQ(rows_of(tables.take_gaps()), 1u);
}

}  // namespace
}  // namespace ptkit::tables::columns
