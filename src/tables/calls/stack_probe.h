// Looks at the stack of a stream's current thread between rows: which frame encloses a position or a time.
//
//   branches -> StreamCalls -> StackMachine
//                    |              ^
//                    +-> StackProbe + (reads it)
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tables/calls/stack/stack_machine.h"
#include "tables/columns/batch.h"

namespace ptkit::tables::calls {

// Gets all frames as they end, because the frames that it has found may change: a stub is a frame of
// the function that it leads to.
class StackProbe : public FrameSink, public RowProbe {
 public:
  // `machine` has all rows; `end` has their counts.
  virtual void at_end(const StreamPosition& end, StackMachine& machine, const Owner& owner) = 0;
  void on_frame(const Frame& frame, const Owner& owner) override;
  void on_anomaly(const Anomaly&, const Owner&) override {}
  // Frames of the stream: valid at its end.
  [[nodiscard]] std::uint64_t frames() const noexcept { return frames_; }

 protected:
  struct Answer {
    std::uint64_t id = 0;
    std::uint64_t entry_ip = 0;
    std::uint64_t import_ip = 0;
    std::int32_t depth = 0;
    std::uint16_t flags = 0;  // tables::columns::StackFlag
  };
  // Sets the frame of the last answer.
  void answer_with(const OpenFrame& frame, std::uint16_t flags);
  // Frames from this number on never were: their answers get the frames below.
  void on_cancelled(std::uint64_t id);
  // Writes the columns of the frame.
  void put_frame(tables::columns::Batch& batch, std::size_t row, std::uint64_t first_id) const noexcept;

  std::vector<Answer> answers_;
  std::uint64_t frames_ = 0;

 private:
  struct Waiting {
    std::uint64_t parent = 0;
    bool parent_known = false;
    std::vector<std::size_t> answers;
  };
  std::unordered_map<std::uint64_t, Waiting> waiting_;  // by id of a frame that has not ended
};

// The frame at the top at positions between rows.
class PositionProbe final : public StackProbe {
 public:
  // Positions ascend: each is after the rows with less than `instructions`, and after those with as many that
  // packets before the stream offset `offset` decided.
  struct Position {
    std::uint64_t instructions = 0;
    std::uint64_t offset = 0;
  };
  explicit PositionProbe(std::vector<Position> positions) : positions_(std::move(positions)) {}

  void before_row(const BranchStep& row, std::uint8_t kind, StackMachine& machine,
                  const Owner& owner) override;
  void at_end(const StreamPosition& end, StackMachine& machine, const Owner& owner) override;
  // A row of at_times for each position, with columns of the frame. Null: out of memory.
  [[nodiscard]] std::unique_ptr<tables::columns::Batch> rows(std::uint64_t first_id) const;

 private:
  void find(const StackMachine& machine);

  std::vector<Position> positions_;
};

// The innermost frame that was certainly open at a time. A time lies between the last row that certainly
// happened before it and the first row that certainly happened after it; a frame that is open at both, and
// was not opened in between, encloses it.
class TimeProbe final : public StackProbe {
 public:
  // [least, most] of the times, in TSC ticks. Both ascend. They must outlive this.
  TimeProbe(std::span<const std::uint64_t> least, std::span<const std::uint64_t> most)
      : least_(least), most_(most) {}

  void before_row(const BranchStep& row, std::uint8_t kind, StackMachine& machine,
                  const Owner& owner) override;
  void at_end(const StreamPosition& end, StackMachine& machine, const Owner& owner) override;
  // A row of at_times for each time. Null: out of memory.
  [[nodiscard]] std::unique_ptr<tables::columns::Batch> rows(std::uint32_t stream,
                                                             std::uint64_t first_id) const;

 private:
  // The state that is certain at times from the `first` one on.
  struct Certain {
    std::size_t first = 0;
    const ThreadStack* stack = nullptr;
    std::uint64_t frames = 0;  // ids of frames that were open then are below
    std::uint64_t top = 0;     // id of the frame at the top
    std::uint64_t switches = 0;
    StreamPosition position;
    Owner owner;
  };
  struct Moment {
    StreamPosition position;  // of the last row that is certainly before
    StreamPosition end;       // of the first row that is certainly after
    Owner owner;
  };
  void follow(StackMachine& machine, const Owner& owner);
  void note(const StreamPosition& now, const StackMachine& machine, const Owner& owner);
  void answer(const StreamPosition& now, const StackMachine& machine, const Owner& owner, bool covered);

  std::span<const std::uint64_t> least_;
  std::span<const std::uint64_t> most_;
  std::vector<Certain> certain_;  // by `first`, ascending
  std::size_t first_certain_ = 0;
  std::size_t next_after_ = 0;  // first time that is certainly after the last row
  bool timed_ = false;          // the last row has a time
  std::uint64_t latest_ = 0;    // of the last row
  std::uint64_t last_offset_ = 0;
  Owner last_owner_;
  std::uint64_t switches_ = 0;   // of owners
  std::vector<Moment> moments_;  // of the answers
};

}  // namespace ptkit::tables::calls
