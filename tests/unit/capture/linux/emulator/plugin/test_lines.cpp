// The lines that the plugin writes to a thread's ring.
#include <gtest/gtest.h>
#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "capture/linux/emulator/plugin/process.h"
#include "capture/linux/emulator/plugin/thread.h"

namespace ptkit::capture::plugin {
namespace {

constexpr std::size_t kLines = 64;
constexpr std::size_t kLogBytes = 4096;

// By the size of a line.
class LinesTest : public ::testing::TestWithParam<std::size_t> {
 protected:
  void SetUp() override {
    bytes_ = 4 * kPageBytes + 2 * slot_bytes();
    memory_ =
        static_cast<char*>(mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    ASSERT_NE(memory_, MAP_FAILED);
    auto* const shared = reinterpret_cast<SharedMemoryHeader*>(memory_);
    shared->log_offset = kPageBytes;
    shared->log_bytes = kLogBytes;
    shared->slots_offset = 4 * kPageBytes;
    shared->slot_bytes = slot_bytes();
    shared->lines_offset = kPageBytes;
    shared->lines_bytes = kLines * line_bytes();
    shared->line_bytes = line_bytes();
    shared->slots = 2;
    shared->recorder_pid = getpid();
    process = Process{};
    process.shared = shared;
    forget_thread();
  }
  void TearDown() override {
    forget_thread();
    process = Process{};
    munmap(memory_, bytes_);
  }

  static std::size_t line_bytes() { return GetParam(); }
  static std::size_t blocks_of_line() { return line_blocks(line_bytes()); }
  static std::size_t slot_bytes() { return kPageBytes + kLines * line_bytes(); }
  SharedMemoryHeader& shared() { return *process.shared; }
  SlotHeader& slot(std::size_t i = 0) {
    return *reinterpret_cast<SlotHeader*>(memory_ + 4 * kPageBytes + i * slot_bytes());
  }
  const Line& line(std::uint64_t number) {
    const char* const lines = reinterpret_cast<char*>(&slot()) + kPageBytes;
    return *reinterpret_cast<const Line*>(lines + number % kLines * line_bytes());
  }
  static void block(std::uintptr_t number) {
    const auto entry = line_bytes() == kLongLineBytes ? ptkit_block : ptkit_short_line_block;
    entry(0, reinterpret_cast<void*>(number));
  }
  // Generated code has CPUX86State in RBP. What lies below RSP may be in use here.
  static void timed_block(std::uint64_t number, std::uint64_t rsp) {
    unsigned vcpu = 0;
    std::array<std::uint64_t, kRip + 1> state{};
    state[kRsp] = rsp;
    asm volatile(
        "mov %%rbp, %%r12\n mov %%rsp, %%r13\n sub $256, %%rsp\n and $-16, %%rsp\n"
        "mov %[state], %%rbp\n call ptkit_timed_block\n mov %%r13, %%rsp\n mov %%r12, %%rbp\n"
        : "+S"(number), "+D"(vcpu)
        : [state] "r"(state.data())
        : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "cc", "memory");
  }

  char* memory_ = nullptr;
  std::size_t bytes_ = 0;
};

INSTANTIATE_TEST_SUITE_P(Sizes, LinesTest, ::testing::Values(kLongLineBytes, kShortLineBytes));

TEST_P(LinesTest, BlocksFillLinesInOrder) {
  const std::size_t in_line = blocks_of_line();
  for (std::uint32_t i = 0; i < 2 * in_line + 2; ++i) block(100 + i);
  EXPECT_EQ(slot().state, SLOT_USED);
  EXPECT_EQ(slot().lines, 2U);
  for (std::uint32_t i = 0; i < 2 * in_line + 2; ++i)
    EXPECT_EQ(line(i / in_line).blocks[i % in_line], 100 + i);
  EXPECT_EQ(line(2).blocks[2], kNoBlock);
  EXPECT_GT(line(0).tsc, 0U);
  EXPECT_GE(line(1).tsc, line(0).tsc);
}

TEST_P(LinesTest, FullLineIsReadableAtOnce) {
  for (std::uint32_t i = 0; i < blocks_of_line(); ++i) block(i);
  EXPECT_EQ(slot().lines, 0U);
  EXPECT_NE(line(0).tsc, 0U);
  EXPECT_EQ(line(0).blocks[blocks_of_line() - 1], blocks_of_line() - 1);
}

TEST_P(LinesTest, MarkCompletesTheLine) {
  block(1);
  mark(MarkKind::SYSCALL, 39, 7);
  block(2);
  mark(MarkKind::SYSCALL_END, 39, 8);
  EXPECT_EQ(slot().lines, 4U);
  EXPECT_EQ(line(0).blocks[0], 1U);
  EXPECT_EQ(line(0).blocks[1], kNoBlock);
  const auto& first = reinterpret_cast<const MarkLine&>(line(1));
  EXPECT_EQ(first.mark, kMark);
  EXPECT_EQ(first.kind, MarkKind::SYSCALL);
  EXPECT_EQ(first.values[0], 39U);
  EXPECT_EQ(first.values[1], 7U);
  EXPECT_EQ(line(2).blocks[0], 2U);
  EXPECT_EQ(reinterpret_cast<const MarkLine&>(line(3)).values[1], 8U);
  EXPECT_EQ(line(4).tsc, 0U);
}

TEST_P(LinesTest, TimedBlocksCarryTimesAndStackPointers) {
  if (line_bytes() != kShortLineBytes) return;  // timed blocks are in short lines only
  shared().block_times = 1;
  for (std::uint32_t i = 0; i < 9; ++i) timed_block(i, 1000 - i);
  EXPECT_EQ(slot().lines, 2U);
  std::uint32_t last = static_cast<std::uint32_t>(line(0).tsc);
  for (std::uint32_t i = 0; i < 9; ++i) {
    const TimedBlock& one = line(i / kLineTimedBlocks).timed[i % kLineTimedBlocks];
    EXPECT_EQ(one.block, i);
    EXPECT_EQ(one.sp, 1000 - i);
    EXPECT_LT(one.tsc - last, 1U << 30U);
    last = one.tsc;
  }
}

TEST_P(LinesTest, WriterWaitsForTheRecorder) {
  constexpr std::uint32_t kBlocks = 100'000;
  std::atomic<bool> done{false};
  std::vector<std::uint32_t> seen;
  std::thread reader([&] {
    for (std::uint64_t read = 0; !done || read < __atomic_load_n(&slot().lines, __ATOMIC_ACQUIRE);) {
      if (read == __atomic_load_n(&slot().lines, __ATOMIC_ACQUIRE)) continue;
      const auto* const blocks = line(read).blocks;
      seen.insert(seen.end(), blocks, blocks + blocks_of_line());
      __atomic_store_n(&slot().consumed, ++read, __ATOMIC_RELEASE);
      if (__atomic_load_n(&slot().waiting, __ATOMIC_SEQ_CST) == 0) continue;
      __atomic_fetch_add(&slot().wake, 1, __ATOMIC_SEQ_CST);
      syscall(SYS_futex, &slot().wake, FUTEX_WAKE, 1, nullptr, nullptr, 0);
    }
  });
  for (std::uint32_t i = 0; i < kBlocks; ++i) block(i);
  done = true;
  reader.join();
  ASSERT_GE(seen.size(), kBlocks - blocks_of_line());
  for (std::uint32_t i = 0; i < seen.size(); ++i) ASSERT_EQ(seen[i], i);
}

TEST_P(LinesTest, WritesNothingAfterStop) {
  block(1);
  shared().stop = 1;
  for (std::uint32_t i = 0; i < 1000; ++i) block(i);
  EXPECT_LE(slot().lines, 1U);
}

TEST_P(LinesTest, CountsThreadsWithoutSlot) {
  slot(0).state = SLOT_USED;
  slot(1).state = SLOT_USED;
  for (std::uint32_t i = 0; i < 1000; ++i) block(i);
  EXPECT_EQ(shared().lost_threads, 1U);
  EXPECT_EQ(slot().lines, 0U);
}

TEST_P(LinesTest, EndedThreadsMarkTheirSlot) {
  block(1);
  mark(MarkKind::THREAD_EXIT, 0);
  leave_thread();
  block(2);
  EXPECT_EQ(slot().state, SLOT_ENDED);
  EXPECT_EQ(slot().lines, 2U);
}

TEST_P(LinesTest, LogRecordsNeverWrap) {
  const char* const text = "a note of some length, so that the end of the ring is met within a record";
  std::uint64_t read = 0;
  int notes = 0;
  for (int i = 0; i < 200; ++i) {
    note(NoteKind::PROGRAM_NATIVE, text);
    while (read < shared().log_written) {
      LogRecord record;
      std::memcpy(&record, memory_ + kPageBytes + read % kLogBytes, sizeof record);
      ASSERT_LE(read % kLogBytes + record.bytes, kLogBytes);
      if (record.kind == LogKind::NOTE) {
        ++notes;
        EXPECT_STREQ(memory_ + kPageBytes + read % kLogBytes + sizeof(LogNote), text);
      }
      read += record.bytes;
    }
    shared().log_consumed = read;
  }
  EXPECT_EQ(notes, 200);
}

}  // namespace
}  // namespace ptkit::capture::plugin
