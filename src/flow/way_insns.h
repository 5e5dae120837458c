// Instructions of the ways of a DecisionGraph, those of a way one behind the other, so that they are copied
// at once: of ways that were asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/arena.h"
#include "flow/rows.h"

namespace ptkit::flow {

class WayInsns {
 public:
  explicit WayInsns(base::Arena& arena)
      : firsts_(arena), heads_(arena), ips_(arena), sizes_(arena), classes_(arena) {}

  // So many cells behind the last one may be read.
  static constexpr std::size_t kSlack = 16;

  // The first one of way `id`; 0: not there yet.
  [[nodiscard]] std::uint32_t first(std::uint32_t id) const noexcept {
    return id < firsts_.size() ? firsts_[id] : 0;
  }
  // How many there are in the blocks of way `id` up to its first branch that takes a bit.
  [[nodiscard]] std::uint32_t head(std::uint32_t id) const noexcept { return heads_[id]; }
  // Adds way `id`, and returns its first one: blocks are added to it until the next way begins.
  std::uint32_t begin(std::uint32_t id, std::uint32_t head);
  void add(std::uint64_t ip, std::span<const BlockInsn> insns);

  [[nodiscard]] const std::uint64_t* ips() const noexcept { return ips_.data(); }
  [[nodiscard]] const std::uint8_t* sizes() const noexcept { return sizes_.data(); }
  [[nodiscard]] const std::uint8_t* classes() const noexcept { return classes_.data(); }
  [[nodiscard]] std::size_t bytes() const noexcept {
    return (firsts_.capacity() + heads_.capacity()) * sizeof(std::uint32_t) +
           ips_.capacity() * sizeof(std::uint64_t) + sizes_.capacity() + classes_.capacity();
  }

 private:
  void reach(std::size_t end);

  base::ArenaVector<std::uint32_t> firsts_;  // by id
  base::ArenaVector<std::uint32_t> heads_;   // by id
  base::ArenaVector<std::uint64_t> ips_;
  base::ArenaVector<std::uint8_t> sizes_;
  base::ArenaVector<std::uint8_t> classes_;
  std::uint32_t end_ = 1;
};

}  // namespace ptkit::flow
