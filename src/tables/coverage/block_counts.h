// How often each basic block was executed, and each instruction of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "code/image/image.h"
#include "code/insn/insn.h"
#include "flow/rows/bulk.h"
#include "trace/bundle.h"

namespace ptkit::tables::coverage {

// A row of the table of blocks. Blocks may overlap: they begin where control came to, and end where it left.
struct ExecutedBlock {
  std::uint64_t ip = 0;
  std::uint32_t instructions = 0;
  trace::SpaceId space = 0;
  code::insn::ExecMode mode = code::insn::ExecMode::BITS64;

  bool operator==(const ExecutedBlock&) const = default;
};

// Hash table of blocks. Its memory grows with distinct blocks.
class BlockCounts {
 public:
  struct Counted {
    ExecutedBlock block;
    std::uint64_t count = 0;  // 0: a free slot
  };

  BlockCounts() : slots_(kFirstSlots) {}

  void add(const ExecutedBlock& block, std::uint64_t count = 1);
  // Adds a row of counted edges. False: it is one of an edge; see flow::kCountedBlock.
  [[nodiscard]] bool add_counted(std::uint64_t from_ip, std::uint64_t to_ip, flow::BranchKind kind,
                                 trace::SpaceId space, std::uint64_t count);
  // By space, mode, address and size.
  [[nodiscard]] std::vector<Counted> sorted() const;

 private:
  static constexpr std::size_t kFirstSlots = 1024;  // a power of two

  [[nodiscard]] Counted& find(const ExecutedBlock& block) noexcept;
  void grow();

  std::vector<Counted> slots_;
  std::size_t used_ = 0;
  std::vector<Counted> rows_;  // of add_counted(): each block once for each table of edges
};

struct InstructionCount {
  std::uint64_t ip = 0;
  std::uint64_t count = 0;  // executions
  std::uint64_t instructions =
      0;  // more than `count` where the rest of a block has no code to tell them apart
  trace::SpaceId space = 0;
  std::uint8_t size = 0;  // bytes; 0: not known
};

// Every instruction of the blocks once, by space and address. Code that was replaced is taken as it was last.
[[nodiscard]] std::vector<InstructionCount> count_instructions(const BlockCounts& blocks,
                                                               const code::image::Image& image);

}  // namespace ptkit::tables::coverage
