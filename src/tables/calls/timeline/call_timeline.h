// Calls of threads as slices that nest, whole or reduced to a number of slices.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "tables/calls/stack/frame.h"

namespace ptkit::tables::calls {

// Positions of a timeline. Threads have axes of their own in instructions.
enum class TimelineAxis : std::uint8_t { TIME, INSTRUCTIONS };

// A call, or calls of one caller next to each other that are too short to be shown alone.
struct Slice {
  std::uint64_t begin = 0;  // TSC ticks, at their earliest; or instructions of the thread before it
  std::uint64_t end = 0;
  std::uint64_t id = 0;       // in the table of calls; here and below, of merged calls that of the longest
  std::uint64_t covered = 0;  // lengths of its calls, summed up
  std::uint64_t instructions = 0;  // of its calls and those above them
  std::uint64_t branches = 0;
  std::uint32_t begin_error = 0;  // TSC ticks; 0 on an axis of instructions
  std::uint32_t end_error = 0;
  std::uint32_t function = 0;  // number in a FunctionTable
  std::uint32_t calls = 1;     // more: they are merged
  std::uint16_t flags = 0;     // FrameFlag; FRAME_EXACT only if all are exact
  CallKind how = CallKind::ROOT;
  CallEnd end_how = CallEnd::END;
  bool has_loss = false;  // control flow was lost within it

  [[nodiscard]] bool is_merged() const noexcept { return calls > 1; }
};

// Slices of a thread in the order of a timeline: begins and ends nest, and positions do not descend.
class SliceVisitor {
 public:
  virtual ~SliceVisitor() = default;
  virtual void begin(const Slice& slice, std::uint32_t depth) = 0;
  virtual void end(const Slice& slice, std::uint32_t depth) = 0;
};

// Positions at which a thread does not execute traced code, or control flow is not known.
struct Band {
  enum class Kind : std::uint8_t { UNTRACED, SWITCHED, LOST };
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Kind kind = Kind::LOST;
};

// Branches of a thread before a position.
struct BranchCount {
  std::uint64_t position = 0;
  std::uint64_t branches = 0;
};

// A thread; of a thread that switches stacks, one of its stacks.
struct Track {
  Owner owner;
  std::uint32_t stream = 0;         // of its first slice
  std::uint32_t stack = 0;          // 0: the first one of the thread
  std::vector<Band> bands;          // in their order; of the first stack only
  std::vector<BranchCount> counts;  // likewise; at most a few thousand
};

class CallTimeline {
 public:
  virtual ~CallTimeline() = default;
  [[nodiscard]] virtual TimelineAxis axis() const noexcept = 0;
  [[nodiscard]] virtual std::span<const Track> tracks() const noexcept = 0;
  virtual void visit(std::size_t track, SliceVisitor& visitor) const = 0;
};

}  // namespace ptkit::tables::calls
