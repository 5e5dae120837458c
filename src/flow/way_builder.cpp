#include "flow/way_builder.h"

#include <algorithm>
#include <bit>

#include "flow/walker.h"

namespace ptkit::flow {

namespace {

constexpr std::uint8_t kWent = FROM_KNOWN | TO_KNOWN | TAKEN;

// Longer ways are left to the Walker: those of one packet together stay far below what WalkBudget allows.
constexpr std::size_t kMostSteps = 256;
constexpr std::size_t kMostDepth = 32;

}  // namespace

bool WayBuilder::add(const Run& run, std::uint32_t count) {
  if (count == 0) return true;
  insns += count;
  if (insns > kMostInsns || steps.size() == kMostSteps) return false;
  steps.emplace_back(run);
  tail.has_branch = false;
  return true;
}

bool WayBuilder::push(std::uint64_t return_ip) {
  calls.push_back(return_ip);
  depth = std::max(depth, calls.size());
  return depth <= kMostDepth;
}

bool WayBuilder::step(Run*& run) {
  if (run->end == RunEnd::FALL) {
    run = &cache_.next(*run);
    return true;
  }
  steps.back().take();
  if (run->pushes && !push(run->next_ip)) return false;
  run = &cache_.target(*run);
  return true;
}

bool WayBuilder::path(Run*& run) {
  for (;;) {
    if (run->end == RunEnd::FAIL || !block(*run)) return false;
    if (run->end != RunEnd::JUMP && run->end != RunEnd::CALL && run->end != RunEnd::FALL) return true;
    if (!step(run)) return false;
  }
}

// Walker::use_bits(). If not all bits can be used, what lies behind the last of them may be there, too.
WayEnd WayBuilder::bits(std::uint64_t ip, std::uint32_t bits, bool return_compression) {
  Run* run = &cache_.at(ip);
  end_ip = ip;
  for (std::uint32_t next = std::bit_floor(bits) >> 1U; next != 0; next >>= 1U) {
    const bool bit = (bits & next) != 0;
    if (!path(run)) return WayEnd::STUCK;
    if (run->end == RunEnd::COND) {
      if (bit) steps.back().take();
      run = bit ? &cache_.target(*run) : &cache_.next(*run);
    } else if (run->end == RunEnd::RETURN && return_compression && bit) {
      if (calls.empty()) return WayEnd::RETURN;
      const std::uint64_t target = calls.back();
      calls.pop_back();
      tail = {.to = target, .flags = kWent, .has_branch = true};
      returns = true;
      run = &cache_.at(target);
    } else {
      return WayEnd::STUCK;
    }
    end_ip = run->ip;
    ++used;
  }
  return WayEnd::USED;
}

// Instructions of the run before `ip`; 0 if none of them is at `ip`.
std::uint32_t WayBuilder::count_to(const Run& run, std::uint64_t ip) const {
  if (ip - run.ip >= run.size) return 0;
  std::uint64_t at = run.ip;
  std::uint32_t count = 0;
  for (const BlockInsn& insn : cache_.insns(run)) {
    if (at >= ip) break;
    at += insn.size;
    ++count;
  }
  return at == ip ? count : 0;
}

bool WayBuilder::has_cr3_write(const Run& run) const {
  const auto insns_of_run = cache_.insns(run);
  return std::any_of(insns_of_run.begin(), insns_of_run.end(),
                     [](const BlockInsn& insn) { return is_anchor(insn, Anchor::CR3_WRITE); });
}

void WayBuilder::leave_at_branch(const Run& run, const std::uint64_t* ip, const AddressFilter& filter) {
  const LeavingBranch branch = leaving_branch(run, ip, filter);
  tail = {.to = branch.to,
          .resume_ip = branch.resume_ip,
          .end_ip = branch.to,
          .flags = branch.flags,
          .has_branch = true};
}

// Walker::walk_to_ip()
bool WayBuilder::reach(std::uint64_t from, std::uint64_t ip) {
  Run* run = &cache_.at(from);
  while (run->ip != ip) {
    if (run->end == RunEnd::FAIL) return false;
    if (const std::uint32_t count = count_to(*run, ip); count != 0) {
      return end_in(*run, count);
    }
    if (!block(*run)) return false;
    if (run->end != RunEnd::JUMP && run->end != RunEnd::CALL && run->end != RunEnd::FALL) return false;
    if (!step(run)) return false;
  }
  return true;
}

// Walker::leave()
bool WayBuilder::leave(std::uint64_t from, const std::uint64_t* ip, const AddressFilter& filter) {
  Run* run = &cache_.at(from);
  for (;;) {
    tail.resume_ip = tail.end_ip = run->ip;
    if (ip != nullptr && run->ip == *ip) return true;
    if (run->end == RunEnd::FAIL) return false;
    if (ip == nullptr && has_cr3_write(*run)) return false;
    if (const std::uint32_t count = ip != nullptr ? count_to(*run, *ip) : 0; count != 0) {
      tail.resume_ip = tail.end_ip = *ip;
      return end_in(*run, count);
    }
    if (!block(*run)) return false;
    if (run->end != RunEnd::JUMP && run->end != RunEnd::CALL && run->end != RunEnd::FALL) {
      leave_at_branch(*run, ip, filter);
      return true;
    }
    const bool left = ip == nullptr && leaves_filter(*run, filter);
    if (!step(run)) return false;
    if (left) {
      tail.resume_ip = 0;
      tail.end_ip = run->ip;
      return true;
    }
  }
}

}  // namespace ptkit::flow
