// Inlined calls of code: the one that each instruction of a path is in.
#pragma once

#include <cstdint>
#include <vector>

#include "tables/calls/code/code_facts.h"

namespace ptkit::tables::calls {

inline constexpr std::uint32_t kNotInlined = 0;  // no inlined call

struct InlinedCall {
  std::uint32_t caller = kNotInlined;  // number of the inlined call that it is in
  std::uint32_t level = 0;             // inlined calls that it is in, itself included
  std::uint32_t function = kUnknownFunction;
};

// An instruction that is in another inlined call than the one before it on the path.
struct InlineChange {
  std::uint64_t ip = 0;
  std::uint32_t instruction = 0;  // number on the path, from 0 on
  std::uint32_t branches = 0;     // on the path before it
  std::uint32_t call = kNotInlined;
};

// Instructions that follow each other without a taken branch.
struct InlinePath {
  std::vector<InlineChange> changes;  // the first one is that of the first instruction
  std::uint64_t same_until = 0;       // up to this address, the path is in the first call
  std::uint64_t next_ip = 0;          // address of the next instruction that was not looked at
  std::uint64_t span_last = 0;        // up to this address, code is in the last call
  std::uint32_t instructions = 0;     // that were looked at
  std::uint32_t branches = 0;         // of these
  bool is_whole = false;              // there are no more
};

class InlineFacts {
 public:
  virtual ~InlineFacts() = default;
  // The following questions are about this space and time.
  virtual void follow(trace::SpaceId space, std::uint64_t tsc) = 0;
  // The path of so many instructions from `first` to `last`; 0: the end is not known. Valid until the next
  // call.
  [[nodiscard]] virtual const InlinePath& path(std::uint64_t first, std::uint64_t last,
                                               std::uint64_t instructions) = 0;
  // Whether an execution of the call may begin at an instruction: it is on the line on which the call begins.
  [[nodiscard]] virtual bool begins_at(std::uint32_t call, std::uint64_t ip) = 0;
  // Valid as long as this object.
  [[nodiscard]] virtual const InlinedCall& call(std::uint32_t number) const = 0;
};

}  // namespace ptkit::tables::calls
