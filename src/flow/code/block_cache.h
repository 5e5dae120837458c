// Decoded code of one view of memory in one execution mode.
#pragma once

#include <memory>
#include <span>

#include "code/image/image.h"
#include "flow/code/chunks.h"
#include "flow/code/dead_ends.h"
#include "flow/code/failed_searches.h"
#include "flow/code/ip_index.h"
#include "flow/code/straight_code.h"
#include "flow/rows/rows.h"

namespace ptkit::flow {

// The packet, if any, that the end of a block needs.
enum class Terminator : std::uint8_t {
  COND,      // one TNT bit
  JUMP,      // direct: no packet
  CALL,      // direct near call: no packet
  RETURN,    // TIP, or a taken TNT bit
  INDIRECT,  // TIP (near)
  FAR,       // TIP, or TIP.PGD
  FALL,      // the block is full, or the next instruction cannot be decoded: continue at next_ip
  FAIL,      // no instruction could be decoded at `ip`: see `failure`; count is 0
};

// Consecutive instructions up to and including the next control transfer.
struct BasicBlock {
  std::uint64_t ip = 0;
  std::uint64_t last_ip = 0;         // of the last instruction
  std::uint64_t next_ip = 0;         // address after the last instruction
  std::uint64_t target = 0;          // target of a direct branch
  BasicBlock* next_block = nullptr;  // blocks at next_ip and `target`, once known
  BasicBlock* target_block = nullptr;
  std::uint32_t first = 0;  // index of its first instruction in the cache
  std::uint16_t count = 0;
  std::uint16_t size = 0;  // bytes
  std::uint16_t number_low = 0;
  std::uint8_t number_high = 0;
  Terminator end = Terminator::FALL;
  BranchKind branch = BranchKind::COND;                     // of the last instruction, unless FALL or FAIL
  code::insn::InsnKind kind = code::insn::InsnKind::OTHER;  // of the last instruction
  bool pushes = false;                                      // a near call that return compression counts
  base::Status failure = base::Status::OK;

  // Number within the cache: less than 2^24.
  [[nodiscard]] std::uint32_t number() const noexcept {
    return std::uint32_t{number_high} << 16U | number_low;
  }
};
static_assert(sizeof(BasicBlock) <= 64, "one cache line");

// One instruction: what its end needs, and where execution continues if it needs no packet.
struct CodeStep {
  Terminator end = Terminator::FAIL;
  std::uint64_t next = 0;
  base::Status failure = base::Status::OK;
  code::insn::InsnClass cls = code::insn::InsnClass::OTHER;
  code::insn::InsnKind kind = code::insn::InsnKind::OTHER;
};

class BlockCache {
 public:
  static constexpr std::uint32_t kMaxInsns = 512;  // instructions of a block
  // More than the largest programs execute. With blocks of usual length, the cache takes about 60 MiB.
  static constexpr std::size_t kMostEntries = std::size_t{1} << 21U;

  // `cs_base`: base of 16 and 32-bit code, which has linear addresses here.
  BlockCache(const code::image::CodeView& view, code::insn::ExecMode mode, std::uint32_t cs_base = 0);
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // The block that starts at `ip`. Valid until clear().
  [[nodiscard]] BasicBlock& at(std::uint64_t ip) {
    const auto is_there = [this, ip](std::uint32_t number) noexcept { return blocks_[number].ip == ip; };
    const std::uint32_t found = blocks_by_ip_.find(ip, is_there);
    return found != IpIndex::kNone ? blocks_[found] : build(ip);
  }
  [[nodiscard]] BasicBlock& next(BasicBlock& block) {
    return *(block.next_block ? block.next_block : (block.next_block = &at(block.next_ip)));
  }
  [[nodiscard]] BasicBlock& target(BasicBlock& block) {
    return *(block.target_block ? block.target_block : (block.target_block = &at(block.target)));
  }

  [[nodiscard]] BasicBlock& block(std::uint32_t number) const noexcept { return blocks_[number]; }
  [[nodiscard]] std::size_t block_count() const noexcept { return blocks_.size(); }
  [[nodiscard]] std::span<const BlockInsn> insns(const BasicBlock& block) const noexcept {
    return insns_.part(block.first, block.count);
  }
  [[nodiscard]] const code::image::CodeView& view() const noexcept { return view_; }
  [[nodiscard]] code::insn::ExecMode mode() const noexcept { return mode_; }
  [[nodiscard]] std::uint32_t cs_base() const noexcept { return cs_base_; }
  // Number of decoded instructions. Blocks that overlap decode their own copies.
  [[nodiscard]] std::size_t decoded() const noexcept { return insns_.size(); }
  // True if an instruction failed to decode and the image had fewer bytes than the longest instruction.
  [[nodiscard]] bool met_missing_code() const noexcept { return met_missing_code_; }
  [[nodiscard]] std::size_t bytes() const noexcept {  // bytes of memory
    return arena_.bytes() + (notes_ != nullptr ? notes_->bytes() : 0);
  }
  [[nodiscard]] base::Arena& arena() noexcept { return arena_; }

  // Where the code at `ip` leads without packets.
  [[nodiscard]] CodeEnd end_of(std::uint64_t ip) { return notes().dead_ends.find(ip); }
  // Passes over straight code: see StraightCode.
  [[nodiscard]] StraightStep pass_straight(std::uint64_t ip, const StraightGoal& goal) {
    return notes().straight.pass(ip, goal);
  }
  [[nodiscard]] FailedSearches& failed_searches() { return notes().failed; }
  // For DeadEnds and StraightCode: no instruction is kept.
  [[nodiscard]] CodeStep step_at(std::uint64_t ip);
  // The image's bytes at `ip`, as many as it has in one part.
  [[nodiscard]] base::Bytes bytes_at(std::uint64_t ip) {
    // An address before the window gives a huge difference.
    if (ip - window_.begin >= window_.bytes.size()) window_ = {ip, view_.bytes_at(ip)};
    return window_.bytes.subspan(ip - window_.begin);
  }

  // Number of instructions and blocks, which take the memory.
  [[nodiscard]] std::size_t entries() const noexcept { return insns_.size() + blocks_.size(); }
  [[nodiscard]] bool too_big() const noexcept { return entries() >= kMostEntries; }
  void clear();  // empties the cache, and its arena

 private:
  // Bytes of the view from an address on, kept from one instruction to the next.
  struct Window {
    std::uint64_t begin = 0;
    base::Bytes bytes;
  };
  // Facts that long walks and searches found out about the code.
  struct Notes {
    explicit Notes(BlockCache& code) noexcept : dead_ends(code), straight(code) {}
    [[nodiscard]] std::size_t bytes() const noexcept {
      return dead_ends.bytes() + straight.bytes() + failed.bytes();
    }
    DeadEnds dead_ends;
    StraightCode straight;
    FailedSearches failed;
  };
  Notes& notes() {
    if (notes_ == nullptr) notes_ = std::make_unique<Notes>(*this);
    return *notes_;
  }
  BasicBlock& build(std::uint64_t ip);
  void fill(BasicBlock& block, std::span<BlockInsn> out);
  base::Status decode_at(std::uint64_t at, code::insn::Insn& out);
  base::Status decode_across(std::uint64_t at, code::insn::Insn& out);
  void finish(BasicBlock& block, const code::insn::Insn& last) const;

  const code::image::CodeView& view_;
  code::insn::ExecMode mode_;
  std::uint32_t cs_base_;
  base::Arena arena_;  // memory of the members below
  Chunks<BasicBlock, 64> blocks_{arena_};
  Chunks<BlockInsn, 4096> insns_{arena_};
  IpIndex blocks_by_ip_{arena_};
  Window window_;
  std::unique_ptr<Notes> notes_;  // kept by clear(): they are bounded, and known for good
  bool met_missing_code_ = false;
};

[[nodiscard]] BranchKind branch_kind(code::insn::InsnClass cls, code::insn::InsnKind kind) noexcept;

}  // namespace ptkit::flow
