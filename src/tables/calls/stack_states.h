// Call stacks at the begins of an index's segments: frames of a window need not be followed from the stream's
// first byte on. docs/index-file.md has the format.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "base/bytes.h"
#include "tables/calls/code/function_table.h"
#include "tables/calls/stack/frame_groups.h"
#include "trace/bundle.h"

namespace ptkit::tables::calls {

class StackStates {
 public:
  // How many functions and groups had numbers.
  struct Numbers {
    std::uint64_t functions = 0;
    std::array<std::uint64_t, kMoreGroups> groups{};
    std::uint64_t cells = 0;
  };
  struct State {
    std::uint64_t segment = 0;
    Numbers numbers;
    std::vector<std::uint8_t> bytes;  // see StreamCalls
  };

  // Drops every second state while all together are too large.
  void add(State state);
  // Of a stream of which all rows were read.
  [[nodiscard]] std::vector<std::uint8_t> to_bytes(const FunctionTable& functions, const MoreGroups& groups);
  // None: the bytes are damaged, or of another trace.
  [[nodiscard]] static std::optional<StackStates> from_bytes(base::Bytes bytes,
                                                             const trace::TraceBundle& bundle);

  // Of the whole stream.
  void set_frames(std::uint64_t frames) noexcept { frames_ = frames; }
  [[nodiscard]] std::uint64_t frames() const noexcept { return frames_; }
  // Ascending by segment.
  [[nodiscard]] const std::vector<State>& states() const noexcept { return states_; }
  // Gives functions and groups, which have none yet, the numbers that they had. False: they had others.
  [[nodiscard]] bool give_numbers(const Numbers& numbers, FunctionTable& functions, MoreGroups& groups) const;

 private:
  template <typename Fields>
  void describe(Fields& fields);

  std::vector<Function> functions_;
  std::array<std::vector<Function>, kMoreGroups> groups_;
  std::vector<MoreGroups::Cell> cells_;
  std::vector<State> states_;
  std::uint64_t frames_ = 0;
  std::uint64_t bytes_ = 0;  // of all states
  std::uint64_t step_ = 1;   // segments from one state to the next
};

}  // namespace ptkit::tables::calls
