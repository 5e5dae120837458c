// Builds the path through the code from an address to the next decision after a packet.
#pragma once

#include <cstdint>
#include <vector>

#include "flow/code/block_cache.h"

namespace ptkit::flow {

class AddressFilter;

enum class PathEnd : std::uint8_t {
  USED,    // all bits are used
  RETURN,  // the next bit is a compressed return to a call before the path
  STUCK,   // the next bit cannot be used
};

// End of a path that its basic blocks do not determine.
struct PathTail {
  std::uint64_t to = 0;         // target of the last branch, if has_branch
  std::uint64_t resume_ip = 0;  // packets are disabled: Walker::resume_ip()
  std::uint64_t end_ip = 0;     // packets are disabled: Walker::ip()
  std::uint8_t flags = 0;       // of the last branch
  bool has_branch = false;      // `to` and `flags` describe the last branch, instead of its block
  bool is_open = false;         // `to` is not set, because the target varies
};

// A block of a path, and whether its last branch is taken.
class PathStep {
 public:
  PathStep() = default;
  explicit PathStep(std::uint32_t value) noexcept : value_(value) {}
  explicit PathStep(const BasicBlock& block) noexcept : value_(block.number() << 1U) {}
  void take() noexcept { value_ |= 1U; }
  [[nodiscard]] std::uint32_t block() const noexcept { return value_ >> 1U; }
  [[nodiscard]] bool taken() const noexcept { return (value_ & 1U) != 0; }
  [[nodiscard]] std::uint32_t value() const noexcept { return value_; }

 private:
  std::uint32_t value_ = 0;
};

// A path under construction. Mirrors Walker: use_bits(), walk_to_decision(), walk_to_ip() and leave(), and
// EventBinder::bind_async().
class PathBuilder {
 public:
  static constexpr std::uint32_t kMostInsns = 1024;  // instructions of a path

  explicit PathBuilder(BlockCache& cache) : cache_(cache) {}

  void clear() {
    steps.clear();
    calls.clear();
    tail = {};
    depth = 0;
    insns = 0;
    part = 0;
    used = 0;
    returns = false;
  }
  [[nodiscard]] bool add_block(const BasicBlock& block) { return add(block, block.count); }
  [[nodiscard]] bool push(std::uint64_t return_ip);
  // Advances over the end of a block that needs no packet.
  [[nodiscard]] bool step(BasicBlock*& block);
  // Advances to the next decision. The block that ends with the decision is part of the path.
  [[nodiscard]] bool path(BasicBlock*& block);
  [[nodiscard]] PathEnd bits(std::uint64_t ip, std::uint32_t bits, bool return_compression);
  [[nodiscard]] bool reach(std::uint64_t from, std::uint64_t ip);
  [[nodiscard]] bool leave(std::uint64_t from, const std::uint64_t* ip, const AddressFilter& filter);
  [[nodiscard]] bool interrupt(std::uint64_t from, std::uint64_t ip);

  std::vector<PathStep> steps;
  std::vector<std::uint64_t> calls;
  PathTail tail;
  std::size_t depth = 0;
  std::uint32_t insns = 0;
  std::uint32_t part = 0;    // instructions of the last step, if not all
  unsigned used = 0;         // number of used TNT bits
  std::uint64_t end_ip = 0;  // TNT bits: address after the last used bit
  bool returns = false;      // to calls within the path

 private:
  [[nodiscard]] bool add(const BasicBlock& block, std::uint32_t count);
  // Ends the path after the first `count` instructions of the block.
  [[nodiscard]] bool end_in(const BasicBlock& block, std::uint32_t count) {
    part = count;
    return add(block, count);
  }
  void leave_at_branch(const BasicBlock& block, const std::uint64_t* ip, const AddressFilter& filter);
  [[nodiscard]] std::uint32_t count_to(const BasicBlock& block, std::uint64_t ip) const;
  [[nodiscard]] bool has_cr3_write(const BasicBlock& block) const;

  BlockCache& cache_;
};

}  // namespace ptkit::flow
