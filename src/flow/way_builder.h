// Finds what lies between a place in the code and where packets lead from it.
#pragma once

#include <cstdint>
#include <vector>

#include "flow/block_cache.h"

namespace ptkit::flow {

class AddressFilter;

// Instructions of the cache's pool that are executed one after the other: a Block.
struct Step {
  std::uint32_t first = 0;
  std::uint16_t count = 0;
  std::uint16_t size = 0;  // bytes
};

enum class WayEnd : std::uint8_t {
  USED,    // all bits were used
  RETURN,  // the next bit stands for a return whose call lies before
  STUCK,   // the next bit cannot be used
};

// Where the Walker stands after packets went off.
struct Leave {
  std::uint64_t resume_ip = 0;  // Walker::resume_ip()
  std::uint64_t end_ip = 0;     // Walker::ip()
};

// A way while it is being found. Mirrors Walker: use_bits(), walk_to_decision(), walk_to_ip() and leave().
class WayBuilder {
 public:
  explicit WayBuilder(BlockCache& cache) : cache_(cache) {}

  struct Row {
    std::uint64_t from;
    std::uint64_t to;
    BranchKind kind;
    std::uint8_t flags;
  };
  void clear() {
    steps.clear();
    noted.clear();
    rows.clear();
    calls.clear();
    depth = 0;
    insns = 0;
    used = 0;
  }
  [[nodiscard]] bool block(const Run& run) { return part(run, run.count, run.size); }
  [[nodiscard]] bool part(const Run& run, std::uint32_t count, std::uint32_t size);
  void row(std::uint64_t from, std::uint64_t to, BranchKind kind, std::uint8_t flags) {
    rows.push_back({from, to, kind, flags});
  }
  [[nodiscard]] bool push(std::uint64_t return_ip);
  // Goes past the end of a run that needs no packet.
  [[nodiscard]] bool step(Run*& run);
  // To the next decision, whose block is part of it.
  [[nodiscard]] bool path(Run*& run);
  [[nodiscard]] WayEnd bits(std::uint64_t ip, std::uint32_t bits, bool return_compression);
  [[nodiscard]] bool reach(std::uint64_t from, std::uint64_t ip);
  [[nodiscard]] bool leave(std::uint64_t from, const std::uint64_t* ip, const AddressFilter& filter,
                           Leave& out);

  std::vector<Step> steps;
  std::vector<const Run*> noted;
  std::vector<Row> rows;
  std::vector<std::uint64_t> calls;
  std::size_t depth = 0;
  std::uint32_t insns = 0;
  unsigned used = 0;         // bits
  std::uint64_t end_ip = 0;  // bits: behind the last that was used

 private:
  void leave_at_branch(const Run& run, const std::uint64_t* ip, const AddressFilter& filter, Leave& out);
  [[nodiscard]] std::uint32_t count_to(const Run& run, std::uint64_t ip) const;
  [[nodiscard]] bool has_cr3_write(const Run& run) const;

  BlockCache& cache_;
};

}  // namespace ptkit::flow
