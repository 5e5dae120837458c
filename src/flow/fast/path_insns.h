// Instructions of the paths of a PathCache, contiguous for each path so that one copy emits them. Paths are
// added on first use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/arena.h"
#include "flow/rows/rows.h"

namespace ptkit::flow {

class PathInsns {
 public:
  explicit PathInsns(base::Arena& arena)
      : firsts_(arena), heads_(arena), ips_(arena), sizes_(arena), classes_(arena) {}

  // Instructions after the last one that may be read.
  static constexpr std::size_t kSlack = 16;

  // First instruction of path `id`; 0: not added yet.
  [[nodiscard]] std::uint32_t first(std::uint32_t id) const noexcept {
    return id < firsts_.size() ? firsts_[id] : 0;
  }
  // Number of instructions in the blocks of path `id` up to its first branch that needs a bit.
  [[nodiscard]] std::uint32_t head(std::uint32_t id) const noexcept { return heads_[id]; }
  // Adds path `id`, and returns its first instruction. add() appends to this path until the next begin().
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
  void grow_to(std::size_t end);

  base::ArenaVector<std::uint32_t> firsts_;  // by id
  base::ArenaVector<std::uint32_t> heads_;   // by id
  base::ArenaVector<std::uint64_t> ips_;
  base::ArenaVector<std::uint8_t> sizes_;
  base::ArenaVector<std::uint8_t> classes_;
  std::uint32_t end_ = 1;
};

}  // namespace ptkit::flow
