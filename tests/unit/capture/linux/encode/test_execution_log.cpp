// The log of transfers of control: one row for each, with the stack pointer after it.
#include <gtest/gtest.h>

#include <csignal>
#include <cstring>

#include "capture/linux/encode/execution_log.h"
#include "unit/support/scratch.h"
#include "unit/support/traces/encoded.h"

namespace ptkit::capture::test {
namespace {

using code::insn::InsnClass;

struct Row {
  std::uint8_t kind;
  std::uint64_t size;
  std::uint64_t from;
  std::uint64_t to;
  std::uint64_t sp;
  std::uint64_t instructions;
  bool operator==(const Row&) const = default;
};

void PrintTo(const Row& row, std::ostream* out) {
  *out << int{row.kind} << " from " << std::hex << row.from << "+" << row.size << " to " << row.to << std::dec
       << " sp " << row.sp << " after " << row.instructions;
}

std::vector<Row> rows_of(const std::string& path) {
  const std::string bytes = formats::test::read_all(path);
  std::vector<Row> out;
  for (std::size_t i = 0; i + 32 <= bytes.size(); i += 32) {
    std::array<std::uint64_t, 4> words{};
    std::memcpy(words.data(), bytes.data() + i, sizeof words);
    out.push_back({static_cast<std::uint8_t>(words[0] >> 56U), words[0] >> 48U & 0xffU,
                   words[0] & 0xffff'ffff'ffffU, words[1], words[2], words[3]});
  }
  return out;
}

Row row(InsnClass kind, std::uint64_t size, std::uint64_t from, std::uint64_t to, std::uint64_t sp,
        std::uint64_t instructions) {
  return {static_cast<std::uint8_t>(kind), size, kBase + from, kBase + to, sp, instructions};
}

// call 6; ret; (6) jz 9; nop; (9) syscall; ret
TEST(TransferLog, HasTheStackPointerAfterEachTransfer) {
  const formats::test::Scratch scratch;
  ManualBlocks manual({0xe8, 1, 0, 0, 0, 0xc3, 0x74, 1, 0x90, 0x0f, 0x05, 0xc3});
  BlockLogs logs;
  logs.transfers = TransferLog(ExecutionLog(scratch.at("transfers")));
  BlockEncoder encoder(
      manual.config, manual.code, [](base::Bytes) {}, std::move(logs));
  const auto block = [&](std::size_t begin, std::size_t end, std::uint64_t tsc, std::uint64_t sp) {
    const std::uint32_t number = manual.block(begin, end);
    encoder.blocks({&number, 1}, tsc, tsc, {&tsc, 1}, {&sp, 1});
  };
  block(0, 5, 1000, 100);
  block(6, 8, 1001, 92);
  block(8, 11, 1002, 91);  // the conditional jump was not taken
  encoder.syscall(1003);
  encoder.syscall_end(1004);
  block(11, 12, 1005, 92);
  encoder.interrupted(kBase + 5, 1006, 100);
  encoder.resumed(kBase + 11, 1007, SIGUSR1);
  block(11, 12, 1008, 50);
  encoder.end(1009);
  const std::vector<Row> expected{
      {TransferLog::kBegin, 0, 0, kBase, 100, 0},
      row(InsnClass::CALL, 5, 0, 6, 92, 1),
      row(InsnClass::FAR_CALL, 2, 9, 11, 92, 4),
      row(InsnClass::RETURN, 1, 11, 5, 100, 5),
      {TransferLog::kInterrupt, 0, kBase + 5, kBase + 5, 100, 5},
      {TransferLog::kSignal, 0, kBase + 5, kBase + 11, 50, 5},
      {TransferLog::kEnd, 0, 0, 0, 0, 5},
  };
  EXPECT_EQ(rows_of(scratch.at("transfers")), expected);
}

// syscall
TEST(TransferLog, EndsWithTheSystemCallThatDidNotReturn) {
  const formats::test::Scratch scratch;
  ManualBlocks manual({0x0f, 0x05});
  BlockLogs logs;
  logs.transfers = TransferLog(ExecutionLog(scratch.at("transfers")));
  BlockEncoder encoder(
      manual.config, manual.code, [](base::Bytes) {}, std::move(logs));
  encoder.block(manual.block(0, 2), 1000);
  encoder.syscall(1001);
  encoder.end(1002);
  const std::vector<Row> rows = rows_of(scratch.at("transfers"));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[1], (Row{static_cast<std::uint8_t>(InsnClass::FAR_CALL), 2, kBase, 0, 0, 1}));
}

}  // namespace
}  // namespace ptkit::capture::test
