// Frames of one stream: reads its branches in parts, and gives them to a StackMachine.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "tables/calls/code/debug_inlines.h"
#include "tables/calls/code/function_table.h"
#include "tables/calls/code/symbol_facts.h"
#include "tables/calls/python_frames.h"
#include "tables/calls/rows_ahead.h"
#include "tables/calls/stack/stack_machine.h"
#include "tables/calls/stack_probe.h"
#include "tables/calls/stack_states.h"
#include "tables/calls/task_switches.h"
#include "tables/columns/read/reader.h"
#include "tables/columns/request.h"

namespace ptkit::tables::calls {

class StreamCalls : private TaskSwitches::Taker {
 public:
  struct Input {
    tables::columns::TableReader::Input reader;  // of this one stream
    const code::image::Image& image;
    const code::symbol::Symbols& symbols;
    tables::columns::Selection selection;   // of threads, processes and spaces
    bool time = true;                       // frames have times
    const flow::JumpTest* jumps = nullptr;  // tail calls; null: all jumps are looked at
    Tails tails = Tails::NESTED;
    bool all_groups = false;  // frames have shares by MoreGroups
    FrameView frames = FrameView::NATIVE;
    StackProbe* probe = nullptr;                          // looks at the stack between rows
    const code::symbol::DebugModules* inlines = nullptr;  // inlined calls have frames; null: they have none
    std::shared_ptr<tables::columns::RowBudget> budget;   // of all streams; null: memory is not checked
    // Frames have only instructions within [begin, end) of these. Null: all of the stream.
    struct Window {
      tables::columns::PhasesBy by = tables::columns::PhasesBy::TIME;
      std::uint64_t begin = 0;
      std::uint64_t end = UINT64_MAX;
      bool needs_sides = true;  // errors and gaps after it, too
    };
    std::optional<Window> window = std::nullopt;
    // Of native frames without inlined calls, tails nested, of all threads. `reader.index` has the segments.
    // Gets the stacks at the segments' begins. Null: they are not noted.
    StackStates* noted = nullptr;
    // Stacks that a window may begin with. Null: its stream is read from the first row on.
    const StackStates* states = nullptr;
  };
  // Objects that `input` refers to, and `sink`, must outlive this.
  StreamCalls(Input input, FrameSink& sink);
  ~StreamCalls() override;
  StreamCalls(const StreamCalls&) = delete;
  StreamCalls& operator=(const StreamCalls&) = delete;

  enum class Step : std::uint8_t {
    MORE,
    END,
    NO_MEMORY,
    NO_ROOM,  // the budget answers STOP
  };
  // Works for a few milliseconds at most.
  [[nodiscard]] Step step();
  // False: the states are damaged. Frames are followed by another object without them.
  [[nodiscard]] bool good() const noexcept { return good_; }
  [[nodiscard]] const FunctionTable& functions() const noexcept { return functions_; }
  [[nodiscard]] const MoreGroups& groups() const noexcept { return groups_; }
  [[nodiscard]] std::uint64_t instructions() const noexcept { return reader_->instructions(); }
  [[nodiscard]] const tables::columns::TableReader& reader() const noexcept { return *reader_; }
  // Errors and gaps so far, or since the last call. Null: out of memory.
  [[nodiscard]] std::unique_ptr<tables::columns::Batch> take_errors() {
    return errors_ == nullptr ? reader_->take_errors() : take_all(errors_);
  }
  [[nodiscard]] std::unique_ptr<tables::columns::Batch> take_gaps() {
    return gaps_ == nullptr ? reader_->take_gaps() : take_all(gaps_);
  }
  void cancel() noexcept { reader_->cancel(); }

 private:
  using Read = tables::columns::TableReader::Step;
  // Rows of several threads that decode are read by one of these.
  void read_ahead(std::size_t threads, std::uint64_t bytes);
  [[nodiscard]] Read read(std::unique_ptr<tables::columns::Batch>& rows);
  [[nodiscard]] static std::unique_ptr<tables::columns::Batch> take_all(
      std::unique_ptr<tables::columns::Batch>& rows);
  void feed(tables::columns::Batch& rows);
  [[nodiscard]] bool has_memory(bool ends);
  [[nodiscard]] bool is_plain() const noexcept;
  void pass();
  void give(const StreamRow& row) override;
  [[nodiscard]] StreamPosition position_of_limit(const BranchStep& limit, const StreamPosition& before) const;
  void show(const StreamRow& row);
  template <typename Fields>
  void fields_of_state(Fields& fields, std::uint64_t& branches);
  void note_state(std::uint64_t offset, std::uint64_t branches);
  [[nodiscard]] tables::columns::SegmentRun resume(const StackStates& states,
                                                   const tables::columns::TableReader::Input& reader);

  FunctionTable functions_;
  MoreGroups groups_;
  SymbolFacts facts_;
  std::optional<PythonFrames> python_;
  std::unique_ptr<DebugInlines> inlines_;
  FrameSink& sink_;
  StackMachine machine_;
  StackProbe* probe_;
  TaskSwitches switches_;
  TaskMoves moves_;
  bool follows_switches_;  // the rows are those of all threads
  std::unique_ptr<tables::columns::TableReader> reader_;
  std::unique_ptr<RowsAhead> ahead_;                // null: rows are read in turn
  std::unique_ptr<tables::columns::Batch> errors_;  // of the parts so far; null: the reader has them
  std::unique_ptr<tables::columns::Batch> gaps_;
  Owner noted_;           // of the rows that were read
  Owner owner_;           // of those that the machine has
  StreamRow row_;         // the last one that was read
  bool is_held_ = false;  // it is a return, and waits for the row after it
  std::shared_ptr<tables::columns::RowBudget> budget_;
  tables::columns::RowBudget::Share share_;
  std::size_t rows_unchecked_ = 0;  // since memory was looked at
  std::optional<Input::Window> window_;
  StackStates* noted_states_;
  std::shared_ptr<const flow::index::Index> index_;
  std::uint32_t stream_;
  std::size_t next_segment_ = 1;  // that is noted
  std::uint64_t next_begin_ = UINT64_MAX;
  std::uint64_t first_offset_ = 0;     // rows before it are not looked at
  std::uint64_t branches_before_ = 0;  // those that the reader has not counted
  bool good_ = true;
  bool is_before_ = false;  // the whole stream is before the window
};

}  // namespace ptkit::tables::calls
