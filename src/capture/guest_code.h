// The blocks that an emulator translated, decoded. A block is straight-line code of one or more instructions:
// it may end anywhere (a page, a limit, an instruction that the emulator cannot continue after), but nothing
// in its middle branches.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "insn/insn.h"

namespace ptkit::capture {

struct GuestBlock {
  std::uint64_t pc = 0;
  std::uint64_t last = 0;               // IP of the last instruction
  std::uint64_t next = 0;               // after it
  std::uint64_t target = 0;             // of a direct branch
  std::uint64_t valid_from = 0;         // TSC: other code was here before; 0: none that was seen
  const std::uint8_t* sizes = nullptr;  // of each instruction, in bytes
  std::uint16_t insns =
      0;                 // 0: the bytes are no instructions. Bytes behind the last one that is are left out
  insn::Insn end;        // the last instruction
  bool repeats = false;  // it is a string instruction with REP: the emulator re-enters it for each iteration
  bool single = false;   // one instruction, which by itself would not end a block: the emulator executes the
                         // rest of a block that it had to leave in such steps
};

// The blocks of one process between two execs, by the emulator's numbers. A child begins with a copy.
//
// One thread adds while others read blocks below a size() that they saw: what was added stays where it is.
class GuestCode {
 public:
  GuestCode() = default;
  // A copy of the first `blocks` blocks, or of all if there are fewer; full chunks are shared.
  GuestCode(const GuestCode& parent, std::uint32_t blocks);

  // `bytes` are the code at `pc`. Returns the block's number.
  std::uint32_t add(std::uint64_t pc, base::Bytes bytes, std::uint64_t valid_from);
  [[nodiscard]] std::uint32_t size() const noexcept { return size_.load(std::memory_order_acquire); }
  [[nodiscard]] const GuestBlock& operator[](std::uint32_t block) const noexcept {
    const Spot spot = spot_of(block);
    return chunks_[spot.chunk].get()[spot.index];
  }
  // How often blocks were added that replaced other code, and when that was for the first time after `tsc`
  // (kNever: not yet).
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  [[nodiscard]] std::uint32_t changes() const noexcept { return changes_.load(std::memory_order_acquire); }
  [[nodiscard]] std::uint64_t next_change(std::uint64_t tsc) const;
  // Of each instruction, in bytes.
  [[nodiscard]] static std::span<const std::uint8_t> sizes(const GuestBlock& block) noexcept {
    return {block.sizes, block.insns};
  }

 private:
  // Each chunk has twice the room of the one before.
  static constexpr unsigned kFirstChunkBits = 10;
  static constexpr unsigned kChunks = 32 - kFirstChunkBits + 1;
  struct Spot {
    unsigned chunk = 0;
    std::size_t index = 0;
  };
  [[nodiscard]] static Spot spot_of(std::uint32_t block) noexcept;
  [[nodiscard]] static std::size_t room(unsigned chunk) noexcept {
    return std::size_t{1} << (kFirstChunkBits + chunk);
  }
  [[nodiscard]] const std::uint8_t* keep_sizes(std::span<const std::uint8_t> sizes);

  std::array<std::shared_ptr<GuestBlock[]>, kChunks> chunks_;
  std::atomic<std::uint32_t> size_{0};
  std::atomic<std::uint32_t> changes_{0};
  mutable std::mutex change_mutex_;
  std::vector<std::uint64_t> change_times_;  // in order
  std::vector<std::shared_ptr<std::uint8_t[]>> size_pools_;
  std::size_t pool_left_ = 0;      // bytes that are free in the last one
  std::vector<std::uint8_t> now_;  // sizes of the block that is being added
};

}  // namespace ptkit::capture
