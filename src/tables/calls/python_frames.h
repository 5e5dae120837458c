// Frames of Python functions instead of those of CPython's evaluation. With `python3 -X perf` (3.12 and
// later) each Python function has a trampoline: a frame of that, and frames that evaluate bytecode, stand for
// one call. docs/calls.md has the rules.
//
//   StackMachine -> PythonFrames -> tables, sums
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/node_bytes.h"
#include "code/symbol/symbols.h"
#include "tables/calls/code/function_table.h"
#include "tables/calls/stack/frame.h"
#include "tables/columns/batch.h"

namespace ptkit::tables::calls {

enum class FrameView : std::uint8_t {
  NATIVE,  // as they are
  PYTHON,  // Python functions, and functions in C without those that evaluate Python code
  MIXED,   // Python functions, and all functions in C but the trampolines' own
};

// The part of a function in the evaluation of Python code.
enum class PythonRole : std::uint8_t {
  NONE,
  FUNCTION,    // the trampoline of a Python function
  TRAMPOLINE,  // calls trampolines
  EVALUATOR,   // evaluates bytecode
  CALL,        // leads a call of the evaluator to a function
  GENERATOR,   // makes a generator or coroutine of the function that was called
};
[[nodiscard]] PythonRole python_role(std::string_view raw_name) noexcept;

// For a table: `parent` and `depth` of frames that are shown count without those that are not. Where a hidden
// frame jumped to a function, that function was called as the hidden one was.
class HiddenFrames {
 public:
  void add(const Frame& frame, bool hidden);
  // After the last frame: changes the rows of a table, of which row `id` is frame `id`.
  void apply(tables::columns::Batch& rows);
  [[nodiscard]] std::uint64_t bytes() const noexcept { return frames_.capacity() * sizeof(Known); }

 private:
  static constexpr std::uint64_t kNone = ~std::uint64_t{0};
  struct Known {
    std::uint64_t parent = kNone;
    std::int32_t below = -1;  // hidden frames below; -1: not counted yet
    CallKind how = CallKind::ROOT;
    bool hidden = false;
  };
  void count(std::uint64_t id);

  std::vector<Known> frames_;  // by id
  std::vector<std::uint64_t> path_;
};

class PythonFrames final : public FrameSink {
 public:
  // All must outlive this. `frames` is not NATIVE.
  PythonFrames(FrameView frames, const FunctionTable& functions, const code::symbol::Symbols& symbols,
               FrameSink& sink)
      : frames_(frames), functions_(functions), symbols_(symbols), sink_(sink) {}

  void on_frame(const Frame& frame, const Owner& owner) override;
  void on_anomaly(const Anomaly& anomaly, const Owner& owner) override { sink_.on_anomaly(anomaly, owner); }
  void on_window(std::span<const std::uint64_t> open, std::uint64_t frames) override {
    sink_.on_window(open, frames);
  }
  void on_off_cpu(const OffCpuInterval& interval, const Owner& owner) override {
    sink_.on_off_cpu(interval, owner);
  }
  void on_other_stack(const Owner& owner) override { sink_.on_other_stack(owner); }
  [[nodiscard]] std::uint64_t bytes() const noexcept override {
    return roles_.capacity() * sizeof(Role) +
           above_.size() * base::node_bytes<decltype(above_)::value_type>() + sink_.bytes();
  }
  [[nodiscard]] std::uint64_t later_bytes(const FrameCounts& counts) const noexcept override {
    return sink_.later_bytes(counts);
  }
  // Whether frames of a function are hidden where others are below them.
  [[nodiscard]] bool hides(std::uint32_t function) { return hides(role_of(function)); }

 private:
  // Sums of the frames that have ended above an open frame.
  struct Above {
    std::uint64_t self_instructions = 0;  // of hidden frames
    bool is_generator = false;            // the call only made a generator
  };
  [[nodiscard]] PythonRole role_of(std::uint32_t function);
  [[nodiscard]] bool hides(PythonRole role) const noexcept;

  FrameView frames_;
  const FunctionTable& functions_;
  const code::symbol::Symbols& symbols_;
  FrameSink& sink_;
  struct Role {
    bool known = false;
    PythonRole role = PythonRole::NONE;
  };
  std::vector<Role> roles_;                         // by function
  std::unordered_map<std::uint64_t, Above> above_;  // by frame
};

}  // namespace ptkit::tables::calls
