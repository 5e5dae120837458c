// The decoded blocks that an emulator translated. A block is straight-line code of one or more instructions.
// It may end anywhere (at a page's end, a limit, an instruction that the emulator cannot continue after).
// Only its last instruction may be a branch.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "code/insn/insn.h"

namespace ptkit::capture {

struct GuestBlock {
  std::uint64_t pc = 0;
  std::uint64_t last = 0;               // IP of the last instruction
  std::uint64_t next = 0;               // IP after the last instruction
  std::uint64_t target = 0;             // of a direct branch
  std::uint64_t valid_from = 0;         // TSC of a code change at these addresses; 0: no change was seen
  const std::uint8_t* sizes = nullptr;  // of each instruction, in bytes
  // Number of instructions; 0: the first bytes are no instruction. Invalid bytes at the end are left out.
  std::uint16_t insns = 0;
  code::insn::Insn end;  // the last instruction
  bool repeats =
      false;  // `end` is a string instruction with REP: the emulator re-enters it for each iteration
  // The block is one instruction that does not end a block. The emulator executes the rest of an interrupted
  // block as such blocks.
  bool single = false;
};

// The blocks of one process between two exec() calls, by the emulator's numbers. A child begins with a copy.
//
// One thread adds blocks while others read blocks below a size() that they have loaded. Storage is a chunked
// array: each chunk is twice as large as the one before, and blocks never move.
//
//   chunk 0: 2^10 blocks | chunk 1: 2^11 blocks | chunk 2: 2^12 blocks | ...
class GuestCode {
 public:
  GuestCode() = default;
  // Copies the first `blocks` blocks, or all if there are fewer. Full chunks are shared.
  GuestCode(const GuestCode& parent, std::uint32_t blocks);

  // Adds the block with the code `bytes` at `pc`. Returns its number.
  std::uint32_t add(std::uint64_t pc, base::Bytes bytes, std::uint64_t valid_from);
  [[nodiscard]] std::uint32_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  [[nodiscard]] const GuestBlock& operator[](std::uint32_t block) const noexcept {
    const Position position = position_of(block);
    return chunks_[position.chunk].get()[position.index];
  }
  // How often blocks were added that replaced other code, and when that was for the first time after
  // `tsc` (kNever: not yet).
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  [[nodiscard]] std::uint32_t changes() const noexcept { return changes_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t next_change(std::uint64_t tsc) const;
  // The size of each instruction, in bytes.
  [[nodiscard]] static std::span<const std::uint8_t> sizes(const GuestBlock& block) noexcept {
    return {block.sizes, block.insns};
  }

 private:
  static constexpr unsigned kFirstChunkBits = 10;
  static constexpr unsigned kChunks = 32 - kFirstChunkBits + 1;
  struct Position {
    unsigned chunk = 0;
    std::size_t index = 0;
  };
  [[nodiscard]] static Position position_of(std::uint32_t block) noexcept;
  [[nodiscard]] static std::size_t capacity(unsigned chunk) noexcept {
    return std::size_t{1} << (kFirstChunkBits + chunk);
  }
  [[nodiscard]] const std::uint8_t* keep_sizes(std::span<const std::uint8_t> sizes);

  std::array<std::shared_ptr<GuestBlock[]>, kChunks> chunks_;
  std::atomic<std::uint32_t> size_{0};
  std::atomic<std::uint32_t> changes_{0};
  mutable std::mutex change_mutex_;
  std::vector<std::uint64_t> change_times_;  // in order
  std::vector<std::shared_ptr<std::uint8_t[]>> size_pools_;
  std::size_t pool_left_ = 0;             // free bytes in the last pool
  std::vector<std::uint8_t> sizes_read_;  // instruction sizes of the block that add() decodes
};

}  // namespace ptkit::capture
