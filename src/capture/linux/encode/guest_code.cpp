#include "capture/linux/encode/guest_code.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "base/addresses.h"

namespace ptkit::capture {

namespace {

using code::insn::ExecMode;
using code::insn::InsnClass;

using base::kPageBytes;
constexpr std::size_t kPoolBytes = std::size_t{64} << 10;
constexpr std::size_t kMostInsns = std::numeric_limits<std::uint16_t>::max();
static_assert(kMostInsns <= kPoolBytes);

bool is_direct(InsnClass cls) {
  return cls == InsnClass::COND_JUMP || cls == InsnClass::JUMP || cls == InsnClass::CALL;
}

// Whether nothing in the code ends this block of one instruction. Instructions that end a block for reasons
// of the emulator (POPF, STI, ...) need no check: they end every block, so no block continues after them.
bool ends_nothing(const GuestBlock& block) {
  const bool plain = block.end.cls == InsnClass::OTHER || block.end.cls == InsnClass::PTWRITE;
  const bool ends_page = block.pc / kPageBytes != block.next / kPageBytes;
  return block.insns == 1 && plain && !block.end.rep && !ends_page;
}

// Decodes `bytes` up to the first invalid instruction.
GuestBlock decode(std::uint64_t pc, base::Bytes bytes, std::vector<std::uint8_t>& sizes) {
  GuestBlock block;
  block.pc = block.last = block.next = pc;
  code::insn::Insn insn;
  sizes.clear();
  while (!bytes.empty() && sizes.size() < kMostInsns &&
         code::insn::decode(ExecMode::BITS64, bytes, insn) == base::Status::OK) {
    block.last = block.next;
    block.end = insn;
    block.next = code::insn::next_ip(insn, ExecMode::BITS64, block.last);
    sizes.push_back(insn.size);
    bytes = bytes.subspan(insn.size);
    // A branch ends the block; the emulator did not execute the bytes after it.
    if (insn.cls != InsnClass::OTHER && insn.cls != InsnClass::PTWRITE) break;
  }
  block.insns = static_cast<std::uint16_t>(sizes.size());
  if (is_direct(block.end.cls))
    block.target = code::insn::direct_target(block.end, ExecMode::BITS64, block.last);
  block.repeats = block.end.rep;
  block.single = ends_nothing(block);
  return block;
}

}  // namespace

GuestCode::Position GuestCode::position_of(std::uint32_t block) noexcept {
  const std::uint64_t position = std::uint64_t{block} + capacity(0);
  const auto chunk = static_cast<unsigned>(std::bit_width(position)) - 1 - kFirstChunkBits;
  return {chunk, position - capacity(chunk)};
}

GuestCode::GuestCode(const GuestCode& parent, std::uint32_t blocks) : size_pools_(parent.size_pools_) {
  const std::uint32_t count = std::min(blocks, parent.size());
  if (count == 0) return;
  const Position last = position_of(count - 1);
  for (unsigned chunk = 0; chunk < last.chunk; ++chunk) chunks_[chunk] = parent.chunks_[chunk];
  chunks_[last.chunk].reset(new GuestBlock[capacity(last.chunk)]);
  std::copy_n(parent.chunks_[last.chunk].get(), last.index + 1, chunks_[last.chunk].get());
  size_.store(count, std::memory_order_release);
}

const std::uint8_t* GuestCode::keep_sizes(std::span<const std::uint8_t> sizes) {
  if (sizes.empty()) return nullptr;
  if (pool_left_ < sizes.size()) {
    size_pools_.emplace_back(new std::uint8_t[kPoolBytes]);
    pool_left_ = kPoolBytes;
  }
  std::uint8_t* const kept = size_pools_.back().get() + (kPoolBytes - pool_left_);
  std::copy(sizes.begin(), sizes.end(), kept);
  pool_left_ -= sizes.size();
  return kept;
}

std::uint32_t GuestCode::add(std::uint64_t pc, base::Bytes bytes, std::uint64_t valid_from) {
  const std::uint32_t number = size_.load(std::memory_order_relaxed);
  const Position position = position_of(number);
  if (chunks_[position.chunk] == nullptr)
    chunks_[position.chunk].reset(new GuestBlock[capacity(position.chunk)]);
  GuestBlock& block = chunks_[position.chunk].get()[position.index];
  block = decode(pc, bytes, sizes_read_);
  block.valid_from = valid_from;
  block.sizes = keep_sizes(sizes_read_);
  if (valid_from != 0) {
    const std::lock_guard lock(change_mutex_);
    change_times_.push_back(valid_from);
    changes_.store(static_cast<std::uint32_t>(change_times_.size()), std::memory_order_release);
  }
  size_.store(number + 1, std::memory_order_release);
  return number;
}

std::uint64_t GuestCode::next_change(std::uint64_t tsc) const {
  const std::lock_guard lock(change_mutex_);
  const auto at = std::upper_bound(change_times_.begin(), change_times_.end(), tsc);
  return at == change_times_.end() ? kNever : *at;
}

}  // namespace ptkit::capture
