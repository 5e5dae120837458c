#include "flow/fast/path_insns.h"

#include <algorithm>

namespace ptkit::flow {

void PathInsns::grow_to(std::size_t end) {
  if (ips_.size() >= end + kSlack) return;
  const std::size_t size = std::max(end + kSlack, ips_.size() + ips_.size() / 2);
  ips_.resize(size);
  sizes_.resize(size);
  classes_.resize(size);
}

std::uint32_t PathInsns::begin(std::uint32_t id, std::uint32_t head) {
  if (id >= firsts_.size()) {
    const std::size_t size = std::max<std::size_t>(id + 1, firsts_.size() * 2);
    firsts_.resize(size);
    heads_.resize(size);
  }
  heads_[id] = head;
  grow_to(end_);
  return firsts_[id] = end_;
}

void PathInsns::add(std::uint64_t ip, std::span<const BlockInsn> insns) {
  grow_to(end_ + insns.size());
  for (const BlockInsn& insn : insns) {
    ips_[end_] = ip;
    sizes_[end_] = insn.size;
    classes_[end_] = static_cast<std::uint8_t>(insn.cls);
    ip += insn.size;
    ++end_;
  }
}

}  // namespace ptkit::flow
