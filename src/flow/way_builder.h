// Finds what lies between a place in the code and where packets lead from it.
#pragma once

#include <cstdint>
#include <vector>

#include "flow/block_cache.h"

namespace ptkit::flow {

class AddressFilter;

enum class WayEnd : std::uint8_t {
  USED,    // all bits were used
  RETURN,  // the next bit stands for a return whose call lies before
  STUCK,   // the next bit cannot be used
};

// What the runs of a way do not say of its end.
struct WayTail {
  std::uint64_t to = 0;         // of the last branch, if it is told here
  std::uint64_t resume_ip = 0;  // packets went off: Walker::resume_ip()
  std::uint64_t end_ip = 0;     // and Walker::ip()
  std::uint32_t edge = 0;       // 1 + its number as an edge; 0: not looked up yet
  std::uint8_t flags = 0;       // of the last branch
  bool has_branch = false;      // it is told here
  bool is_open = false;         // but for its target, which is another one each time
};

// A run that is gone through, and whether its last branch is taken.
class PathStep {
 public:
  PathStep() = default;
  explicit PathStep(std::uint32_t value) noexcept : value_(value) {}
  explicit PathStep(const Run& run) noexcept : value_(run.number() << 1U) {}
  void take() noexcept { value_ |= 1U; }
  [[nodiscard]] std::uint32_t run() const noexcept { return value_ >> 1U; }
  [[nodiscard]] bool taken() const noexcept { return (value_ & 1U) != 0; }
  [[nodiscard]] std::uint32_t value() const noexcept { return value_; }

 private:
  std::uint32_t value_ = 0;
};

// A way while it is being found. Mirrors Walker: use_bits(), walk_to_decision(), walk_to_ip() and leave().
class WayBuilder {
 public:
  static constexpr std::uint32_t kMostInsns = 1024;  // of a way

  explicit WayBuilder(BlockCache& cache) : cache_(cache) {}

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
  [[nodiscard]] bool block(const Run& run) { return add(run, run.count); }
  [[nodiscard]] bool push(std::uint64_t return_ip);
  // Goes past the end of a run that needs no packet.
  [[nodiscard]] bool step(Run*& run);
  // To the next decision, whose block is part of it.
  [[nodiscard]] bool path(Run*& run);
  [[nodiscard]] WayEnd bits(std::uint64_t ip, std::uint32_t bits, bool return_compression);
  [[nodiscard]] bool reach(std::uint64_t from, std::uint64_t ip);
  [[nodiscard]] bool leave(std::uint64_t from, const std::uint64_t* ip, const AddressFilter& filter);

  std::vector<PathStep> steps;
  std::vector<std::uint64_t> calls;
  WayTail tail;
  std::size_t depth = 0;
  std::uint32_t insns = 0;
  std::uint32_t part = 0;    // instructions of the last step, where not all
  unsigned used = 0;         // bits
  std::uint64_t end_ip = 0;  // bits: behind the last that was used
  bool returns = false;      // to calls within

 private:
  [[nodiscard]] bool add(const Run& run, std::uint32_t count);
  // The first instructions of the run end the way.
  [[nodiscard]] bool end_in(const Run& run, std::uint32_t count) {
    part = count;
    return add(run, count);
  }
  void leave_at_branch(const Run& run, const std::uint64_t* ip, const AddressFilter& filter);
  [[nodiscard]] std::uint32_t count_to(const Run& run, std::uint64_t ip) const;
  [[nodiscard]] bool has_cr3_write(const Run& run) const;

  BlockCache& cache_;
};

}  // namespace ptkit::flow
