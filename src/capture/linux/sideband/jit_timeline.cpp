#include "capture/linux/sideband/jit_timeline.h"

#include <algorithm>
#include <utility>

namespace ptkit::capture {

namespace {

// User code has addresses below 2**47. Names that replace others at an address get file offsets of their own:
// the address, with the number of the name in the bits from 47 on.
constexpr unsigned kAddressBits = 47;
constexpr std::uint64_t kMostGenerations = (std::uint64_t{1} << (63U - kAddressBits)) - 1;

}  // namespace

JitTimeline::JitTimeline(std::vector<JitExecution> executions) : executions_(std::move(executions)) {}

std::uint64_t JitTimeline::Held::file_offset() const noexcept {
  return name.address | generation << kAddressBits;
}

JitTimeline JitTimeline::forked(std::uint64_t tsc, std::vector<JitExecution> executions) const {
  JitTimeline child(std::move(executions));
  for (const Held& held : names_) {
    if (held.name.after > tsc || held.from > tsc || held.to <= tsc) continue;
    child.hold({held.name, held.generation});
  }
  return child;
}

void JitTimeline::hold(Held held) {
  newest_.assign(held.name.address, held.last(), names_.size());
  names_.push_back(std::move(held));
}

std::optional<std::uint64_t> JitTimeline::add(const Name& name) {
  constexpr std::uint64_t kEnd = std::uint64_t{1} << kAddressBits;
  if (name.size == 0 || name.size > kEnd || name.address > kEnd - name.size) return std::nullopt;
  std::vector<std::size_t> earlier;
  newest_.for_each_over(name.address, name.address + (name.size - 1),
                        [&](std::size_t number) { earlier.push_back(number); });
  Held held{name};
  std::uint64_t after = name.after;
  for (const std::size_t number : earlier) {
    const Held& other = names_[number];
    const bool same = other.name.address == name.address && other.name.size == name.size;
    if (same && other.name.text == name.text) return std::nullopt;
    held.generation = std::max(held.generation, other.generation + 1);
    if (other.from != trace::kTscMin) after = std::max(after, other.from);
  }
  if (held.generation > kMostGenerations) return std::nullopt;
  if (!earlier.empty()) held.from = executed_after(name, after);
  for (const std::size_t number : earlier) names_[number].to = std::min(names_[number].to, held.from);
  const std::uint64_t offset = held.file_offset();
  hold(std::move(held));
  return offset;
}

// When code of the name was first executed after `tsc`: the first one with other bytes than before, or else
// the first one. If there is none, right after `tsc`.
std::uint64_t JitTimeline::executed_after(const Name& name, std::uint64_t tsc) const {
  std::uint64_t any = trace::kTscMax;
  std::uint64_t changed = trace::kTscMax;
  auto at = std::ranges::lower_bound(executions_, name.address, {}, &JitExecution::address);
  for (; at != executions_.end() && at->address - name.address < name.size; ++at) {
    if (at->tsc <= tsc) continue;
    any = std::min(any, at->tsc);
    if (at->changed) changed = std::min(changed, at->tsc);
  }
  if (changed != trace::kTscMax) return changed;
  return any != trace::kTscMax ? any : tsc + 1;
}

std::vector<trace::NameRange> JitTimeline::ranges(trace::SpaceId space) const {
  std::vector<trace::NameRange> out;
  for (const Held& held : names_) {
    if (held.from >= held.to) continue;
    out.push_back({space, held.name.address, held.name.size, held.name.file, held.file_offset(), held.from,
                   held.to, true});
  }
  return out;
}

}  // namespace ptkit::capture
