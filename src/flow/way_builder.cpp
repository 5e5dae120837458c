#include "flow/way_builder.h"

#include <algorithm>
#include <bit>

#include "flow/walker.h"

namespace ptkit::flow {

namespace {

constexpr std::uint8_t kBoth = FROM_KNOWN | TO_KNOWN;
constexpr std::uint8_t kWent = FROM_KNOWN | TO_KNOWN | TAKEN;

// Longer ways are left to the Walker: those of one packet together stay far below what WalkBudget allows.
constexpr std::uint32_t kMostInsns = 1024;
constexpr std::size_t kMostSteps = 256;
constexpr std::size_t kMostDepth = 32;

}  // namespace

bool WayBuilder::part(const Run& run, std::uint32_t count, std::uint32_t size) {
  if (count == 0) return true;
  insns += count;
  if (insns > kMostInsns || steps.size() == kMostSteps) return false;
  noted.push_back(&run);
  steps.push_back({run.first, static_cast<std::uint16_t>(count), static_cast<std::uint16_t>(size)});
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
  row(run->last_ip, run->target, run->branch, kWent);
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
      row(run->last_ip, bit ? run->target : run->next_ip, BranchKind::COND, bit ? kWent : kBoth);
      run = bit ? &cache_.target(*run) : &cache_.next(*run);
    } else if (run->end == RunEnd::RETURN && return_compression && bit) {
      if (calls.empty()) return WayEnd::RETURN;
      const std::uint64_t target = calls.back();
      calls.pop_back();
      row(run->last_ip, target, BranchKind::RETURN, kWent);
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

void WayBuilder::leave_at_branch(const Run& run, const std::uint64_t* ip, const AddressFilter& filter,
                                 Leave& out) {
  const LeavingBranch branch = leaving_branch(run, ip, filter);
  row(run.last_ip, branch.to, run.branch, branch.flags);
  out.resume_ip = branch.resume_ip;
  out.end_ip = branch.to;
}

// Walker::walk_to_ip()
bool WayBuilder::reach(std::uint64_t from, std::uint64_t ip) {
  Run* run = &cache_.at(from);
  while (run->ip != ip) {
    if (run->end == RunEnd::FAIL) return false;
    if (const std::uint32_t count = count_to(*run, ip); count != 0) {
      return part(*run, count, static_cast<std::uint32_t>(ip - run->ip));
    }
    if (!block(*run)) return false;
    if (run->end != RunEnd::JUMP && run->end != RunEnd::CALL && run->end != RunEnd::FALL) return false;
    if (!step(run)) return false;
  }
  return true;
}

// Walker::leave()
bool WayBuilder::leave(std::uint64_t from, const std::uint64_t* ip, const AddressFilter& filter, Leave& out) {
  Run* run = &cache_.at(from);
  for (;;) {
    out.resume_ip = out.end_ip = run->ip;
    if (ip != nullptr && run->ip == *ip) return true;
    if (run->end == RunEnd::FAIL) return false;
    if (ip == nullptr && has_cr3_write(*run)) return false;
    if (const std::uint32_t count = ip != nullptr ? count_to(*run, *ip) : 0; count != 0) {
      out.resume_ip = out.end_ip = *ip;
      return part(*run, count, static_cast<std::uint32_t>(*ip - run->ip));
    }
    if (!block(*run)) return false;
    if (run->end != RunEnd::JUMP && run->end != RunEnd::CALL && run->end != RunEnd::FALL) {
      leave_at_branch(*run, ip, filter, out);
      return true;
    }
    const bool left = ip == nullptr && leaves_filter(*run, filter);
    if (!step(run)) return false;
    if (left) {
      out.resume_ip = 0;
      out.end_ip = run->ip;
      return true;
    }
  }
}

}  // namespace ptkit::flow
