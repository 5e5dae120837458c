#include "flow/code/straight_code.h"

#include "flow/code/block_cache.h"

namespace ptkit::flow {

namespace {

constexpr std::uint64_t kWidest = 15;  // an instruction over a multiple of 4 KiB ends this far behind it

// Bits of addresses within a step.
constexpr unsigned bits_of(unsigned level) noexcept { return 12 + 6 * level; }

void add(StraightStep& sum, const StraightStep& more) noexcept {
  sum.next = more.next;
  sum.insns += more.insns;
  sum.kinds.add(more.kinds);
  sum.goes_on = more.goes_on;
}

}  // namespace

std::size_t StraightCode::bytes() const noexcept {
  constexpr std::size_t kEntry = sizeof(StraightStep) + 40;
  std::size_t count = 0;
  for (const auto& steps : steps_) count += steps.size();
  return count * kEntry;
}

StraightStep StraightCode::decode(std::uint64_t ip) {
  StraightStep out(ip);
  while (out.next >> bits_of(0) == ip >> bits_of(0)) {
    const CodeStep step = code_.step_at(out.next);
    out.goes_on = step.end == Terminator::FALL && step.next > out.next;
    if (!out.goes_on) break;
    ++out.insns;
    out.kinds.add(step.cls, step.kind);
    out.next = step.next;
  }
  return out;
}

StraightStep StraightCode::step(unsigned level, std::uint64_t ip) {
  if (const auto found = steps_[level].find(ip); found != steps_[level].end()) return found->second;
  StraightStep out(ip);
  if (level == 0) {
    out = decode(ip);
  } else {
    while (out.goes_on && out.next >> bits_of(level) == ip >> bits_of(level))
      add(out, step(level - 1, out.next));
  }
  steps_[level].emplace(ip, out);
  return out;
}

std::optional<StraightStep> StraightCode::allowed(unsigned level, std::uint64_t ip, std::uint64_t most,
                                                  const StraightGoal& goal) {
  const std::uint64_t size = std::uint64_t{1} << bits_of(level);
  if (level != 0 && ip % size >= kWidest) return std::nullopt;
  // Straight code has all addresses from its begin to its end.
  if (goal.ip && *goal.ip - ip < size - ip % size) return std::nullopt;
  const StraightStep out = step(level, ip);
  if (out.insns > most || out.kinds.any_of(goal.kinds)) return std::nullopt;
  if (goal.ip && *goal.ip - ip < out.next - ip) return std::nullopt;
  return out;
}

StraightStep StraightCode::pass(std::uint64_t ip, const StraightGoal& goal) {
  if (bytes() > kMostBytes) {
    for (auto& steps : steps_) steps.clear();
  }
  StraightStep out(ip);
  while (out.goes_on && out.next != goal.ip) {
    std::optional<StraightStep> next;
    for (unsigned level = kLevels; level-- > 0 && !next;)
      next = allowed(level, out.next, goal.most - out.insns, goal);
    if (!next) break;
    add(out, *next);
  }
  return out;
}

}  // namespace ptkit::flow
