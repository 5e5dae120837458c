#include <gtest/gtest.h>

#include "tables/columns/read/row_budget.h"

namespace ptkit::tables::columns {
namespace {

using Answer = RowBudget::Answer;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::uint64_t kRow = 1024;  // bytes: 1024 rows are one MiB
constexpr std::uint64_t kStream = 100'000;

struct Machine {
  base::MemoryLeft left;
  unsigned looks = 0;

  [[nodiscard]] RowBudget::Input input(std::uint64_t after_bytes = 0) {
    RowBudget::Input input;
    input.row_bytes = kRow;
    input.after_bytes = after_bytes;
    input.left = [this] {
      ++looks;
      return left;
    };
    return input;
  }
};

TEST(RowBudget, SmallTablesCostNoCheck) {
  Machine machine;
  machine.left.pages = {0, base::MemoryLimit::CGROUP};
  RowBudget budget(machine.input());
  budget.add_streams(kStream);
  RowBudget::Share share;
  EXPECT_EQ(budget.report(share, 16 * 1024 - 1, 0, kStream / 2), Answer::GO_ON);
  EXPECT_EQ(machine.looks, 0U);
  EXPECT_EQ(budget.report(share, 16 * 1024, 0, kStream / 2), Answer::STOP);
  EXPECT_EQ(machine.looks, 1U);
}

TEST(RowBudget, ExtrapolatesRowsByStreamBytes) {
  Machine machine;
  machine.left.pages = {400 * kMiB, base::MemoryLimit::MEM_AVAILABLE};  // 350 may be taken
  for (const auto& [position, answer] :
       {std::pair{kStream / 20, Answer::GO_ON}, {kStream / 25, Answer::COUNT}}) {
    RowBudget budget(machine.input());
    budget.add_streams(kStream);
    RowBudget::Share share;
    EXPECT_EQ(budget.report(share, 16 * 1024, 0, position), answer);
    EXPECT_EQ(budget.expected_rows(), 16 * 1024 * (kStream / position));
  }
}

TEST(RowBudget, CountsBytesAfterwards) {
  Machine machine;
  machine.left.pages = {400 * kMiB, base::MemoryLimit::MEM_AVAILABLE};
  RowBudget budget(machine.input(kRow));
  budget.add_streams(kStream);
  RowBudget::Share share;
  EXPECT_EQ(budget.report(share, 16 * 1024, 0, kStream / 12), Answer::COUNT)
      << "16 * 11 + 16 * 12 MiB are needed";
}

TEST(RowBudget, CountsAddressSpaceOfGrowth) {
  Machine machine;
  machine.left.address_space = {400 * kMiB, base::MemoryLimit::RLIMIT_AS};
  RowBudget budget(machine.input());
  budget.add_streams(kStream);
  RowBudget::Share share;
  EXPECT_EQ(budget.report(share, 16 * 1024, 0, kStream / 16), Answer::COUNT) << "240 MiB grow to 360 MiB";
}

TEST(RowBudget, ReadersShareIt) {
  Machine machine;
  machine.left.pages = {400 * kMiB, base::MemoryLimit::CGROUP};
  RowBudget budget(machine.input());
  RowBudget::Share first;
  RowBudget::Share second;
  budget.add_streams(kStream / 2);
  budget.add_streams(kStream / 2);
  EXPECT_EQ(budget.report(first, 8 * 1024, 0, kStream / 50), Answer::GO_ON);
  EXPECT_EQ(budget.report(second, 8 * 1024, 0, kStream / 50), Answer::COUNT) << "16 MiB of 4 %";
  EXPECT_EQ(budget.rows(), 16U * 1024);
}

TEST(RowBudget, RowsMayPrecedePosition) {
  Machine machine;
  machine.left.pages = {4096 * kMiB, base::MemoryLimit::CGROUP};
  RowBudget budget(machine.input());
  budget.add_streams(kStream);
  RowBudget::Share share;
  EXPECT_EQ(budget.report(share, 1000, 0, 1000), Answer::GO_ON);
  EXPECT_EQ(budget.report(share, 5000, 0, 1000), Answer::GO_ON);
  EXPECT_EQ(budget.expected_rows(), kStream);
  EXPECT_EQ(budget.report(share, 5000, 0, 2500), Answer::GO_ON);
  EXPECT_EQ(budget.expected_rows(), 2 * kStream);
}

TEST(RowBudget, ChecksAgainWhileRowsGrow) {
  Machine machine;
  machine.left.pages = {1024 * kMiB, base::MemoryLimit::MEM_AVAILABLE};
  RowBudget::Input input = machine.input();
  input.estimate = false;
  RowBudget budget(input);
  RowBudget::Share share;
  std::uint64_t rows = 0;
  while (rows < 512 * 1024) {
    rows += 1024;
    ASSERT_EQ(budget.report(share, rows, 0, 1), Answer::GO_ON);
  }
  EXPECT_GE(machine.looks, 512U / 64);
  EXPECT_LE(machine.looks, 512U / 16);
  machine.left.pages.bytes = 16 * kMiB;  // others have taken it
  Answer answer = Answer::GO_ON;
  for (std::uint64_t end = rows + 65 * 1024; answer == Answer::GO_ON && rows < end;)
    answer = budget.report(share, rows += 1024, 0, 1);
  EXPECT_EQ(answer, Answer::STOP);
}

TEST(RowBudget, TakenRowsFreeBudget) {
  Machine machine;
  machine.left.pages = {1024 * kMiB, base::MemoryLimit::CGROUP};
  RowBudget budget(machine.input());
  RowBudget::Share share;
  for (int part = 0; part < 100; ++part) {
    EXPECT_EQ(budget.report(share, 15 * 1024, 0, 1), Answer::GO_ON);
    EXPECT_EQ(budget.report(share, 0, 0, 1), Answer::GO_ON);
  }
  EXPECT_EQ(machine.looks, 0U);
  EXPECT_EQ(budget.rows(), 0U);
}

TEST(RowBudget, CountsErrorsAndGaps) {
  Machine machine;
  RowBudget budget(machine.input());
  RowBudget::Share share;
  EXPECT_EQ(budget.report(share, 1, 16 * kMiB, 1), Answer::GO_ON);
  EXPECT_EQ(machine.looks, 1U);
}

TEST(RowBudget, CountsUpToMostRows) {
  RowBudget::Input input;
  input.most_rows = 1000;
  RowBudget budget(input);
  RowBudget::Share share;
  EXPECT_EQ(budget.report(share, 1000, 0, 1), Answer::GO_ON);
  EXPECT_EQ(budget.report(share, 1001, 0, 1), Answer::STOP);
}

TEST(RowBudget, BytesThatAreNeededLaterHaveToFit) {
  Machine machine;
  machine.left.pages = {80 * kMiB, base::MemoryLimit::MEM_AVAILABLE};  // 70 may be taken
  RowBudget budget(RowBudget::Input{.left = machine.input().left});
  RowBudget::Share one;
  RowBudget::Share other;
  EXPECT_EQ(budget.report_bytes(one, 8 * kMiB, 7 * kMiB), Answer::GO_ON);
  EXPECT_EQ(machine.looks, 0U);
  EXPECT_EQ(budget.report_bytes(other, 10 * kMiB, 30 * kMiB), Answer::GO_ON);
  EXPECT_EQ(machine.looks, 1U);
  EXPECT_EQ(budget.refused_bytes(), 0U);
  EXPECT_EQ(budget.report_bytes(other, 10 * kMiB, 50 * kMiB), Answer::STOP);
  EXPECT_EQ(budget.refused_bytes(), 75 * kMiB);
  EXPECT_EQ(budget.report_bytes(other, 0, 0), Answer::GO_ON);
}

}  // namespace
}  // namespace ptkit::tables::columns
