#include "flow/fast/path_builder.h"

#include <algorithm>
#include <bit>

#include "flow/walk/walker.h"

namespace ptkit::flow {

namespace {

// The Walker handles longer paths: it looks ahead in long walks, which are no paths here.
constexpr std::size_t kMostSteps = 256;
constexpr std::size_t kMostDepth = 32;

}  // namespace

bool PathBuilder::add(const BasicBlock& block, std::uint32_t count) {
  if (count == 0) return true;
  insns += count;
  if (insns > kMostInsns || steps.size() == kMostSteps) return false;
  steps.emplace_back(block);
  tail.has_branch = false;
  return true;
}

bool PathBuilder::push(std::uint64_t return_ip) {
  calls.push_back(return_ip);
  depth = std::max(depth, calls.size());
  return depth <= kMostDepth;
}

bool PathBuilder::step(BasicBlock*& block) {
  if (block->end == Terminator::FALL) {
    block = &cache_.next(*block);
    return true;
  }
  steps.back().take();
  if (block->pushes && !push(block->next_ip)) return false;
  block = &cache_.target(*block);
  return true;
}

bool PathBuilder::path(BasicBlock*& block) {
  for (;;) {
    if (block->end == Terminator::FAIL || !add_block(*block)) return false;
    if (block->end != Terminator::JUMP && block->end != Terminator::CALL && block->end != Terminator::FALL)
      return true;
    if (!step(block)) return false;
  }
}

// Mirrors Walker::use_bits(). If some bits cannot be used, the path may continue after the last used bit.
PathEnd PathBuilder::bits(std::uint64_t ip, std::uint32_t bits, bool return_compression) {
  BasicBlock* block = &cache_.at(ip);
  end_ip = ip;
  for (std::uint32_t next = std::bit_floor(bits) >> 1U; next != 0; next >>= 1U) {
    const bool bit = (bits & next) != 0;
    if (!path(block)) return PathEnd::STUCK;
    if (block->end == Terminator::COND) {
      if (bit) steps.back().take();
      block = bit ? &cache_.target(*block) : &cache_.next(*block);
    } else if (block->end == Terminator::RETURN && return_compression && bit) {
      if (calls.empty()) return PathEnd::RETURN;
      const std::uint64_t target = calls.back();
      calls.pop_back();
      tail = {.to = target, .flags = kTakenBranch, .has_branch = true};
      returns = true;
      block = &cache_.at(target);
    } else {
      return PathEnd::STUCK;
    }
    end_ip = block->ip;
    ++used;
  }
  return PathEnd::USED;
}

// Number of instructions of the block before `ip`; 0 if none of its instructions is at `ip`.
std::uint32_t PathBuilder::count_to(const BasicBlock& block, std::uint64_t ip) const {
  if (ip - block.ip >= block.size) return 0;
  std::uint64_t at = block.ip;
  std::uint32_t count = 0;
  for (const BlockInsn& insn : cache_.insns(block)) {
    if (at >= ip) break;
    at += insn.size;
    ++count;
  }
  return at == ip ? count : 0;
}

bool PathBuilder::has_cr3_write(const BasicBlock& block) const {
  const auto insns_of_run = cache_.insns(block);
  return std::any_of(insns_of_run.begin(), insns_of_run.end(),
                     [](const BlockInsn& insn) { return is_binding_insn(insn, BindingInsn::CR3_WRITE); });
}

void PathBuilder::leave_at_branch(const BasicBlock& block, const std::uint64_t* ip,
                                  const AddressFilter& filter) {
  const LeavingBranch branch = leaving_branch(block, ip, filter);
  tail = {.to = branch.to,
          .resume_ip = branch.resume_ip,
          .end_ip = branch.to,
          .flags = branch.flags,
          .has_branch = true};
}

// Mirrors Walker::walk_to_ip().
bool PathBuilder::reach(std::uint64_t from, std::uint64_t ip) {
  BasicBlock* block = &cache_.at(from);
  while (block->ip != ip) {
    if (block->end == Terminator::FAIL) return false;
    if (const std::uint32_t count = count_to(*block, ip); count != 0) {
      return end_in(*block, count);
    }
    if (!add_block(*block)) return false;
    if (block->end != Terminator::JUMP && block->end != Terminator::CALL && block->end != Terminator::FALL)
      return false;
    if (!step(block)) return false;
  }
  return true;
}

// Mirrors Walker::leave().
bool PathBuilder::leave(std::uint64_t from, const std::uint64_t* ip, const AddressFilter& filter) {
  if (ip == nullptr && filter.watches()) return false;
  BasicBlock* block = &cache_.at(from);
  for (;;) {
    tail.resume_ip = tail.end_ip = block->ip;
    if (ip != nullptr && block->ip == *ip) return true;
    if (block->end == Terminator::FAIL) return false;
    if (ip == nullptr && has_cr3_write(*block)) return false;
    if (const std::uint32_t count = ip != nullptr ? count_to(*block, *ip) : 0; count != 0) {
      tail.resume_ip = tail.end_ip = *ip;
      return end_in(*block, count);
    }
    if (!add_block(*block)) return false;
    if (block->end != Terminator::JUMP && block->end != Terminator::CALL && block->end != Terminator::FALL) {
      if (!may_leave(*block, ip, filter)) return false;
      leave_at_branch(*block, ip, filter);
      return true;
    }
    const bool left = ip == nullptr && leaves_filter(*block, filter);
    if (!step(block)) return false;
    if (left) {
      tail.resume_ip = 0;
      tail.end_ip = block->ip;
      return true;
    }
  }
}

// Mirrors EventBinder::bind_async() for a TIP.PGD without IP.
bool PathBuilder::interrupt(std::uint64_t from, std::uint64_t ip) {
  if (!reach(from, ip)) return false;
  const BasicBlock& block = cache_.at(ip);
  if (block.count == 0) return false;
  const code::insn::InsnKind kind = cache_.insns(block).front().kind;
  if (kind == code::insn::InsnKind::VMLAUNCH || kind == code::insn::InsnKind::VMRESUME)
    return false;  // erratum SKD022
  tail.resume_ip = tail.end_ip = ip;
  return true;
}

}  // namespace ptkit::flow
