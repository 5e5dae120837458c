// Finds the branch at which the kernel switches to another thread. Notes of context switches stand somewhere
// near: a recorder writes one before the switch (to no thread, the idle task), and one after it, on the next
// thread's stack; a PIP is before it. Rows between them are of the thread with the stack in use.
//
//   StreamCalls -> TaskSwitches -> StreamCalls -> StackMachine
//                       +- tests if the top frame switches ->+
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "tables/calls/stack/stack_machine.h"
#include "tables/calls/stack/state_fields.h"

namespace ptkit::tables::calls {

// A branch, or a mark between branches (tables::columns::MarkKind).
struct StreamRow {
  enum class Switch : std::uint8_t { NONE, RETURN, ENABLED };

  BranchStep step;
  StreamPosition before;  // gaps: the row before it
  Owner owner;
  std::uint8_t kind = 0;
  bool begins_run = false;
  Switch switches = Switch::NONE;  // the kernel switches to `owner` there
};

// Gives a row to the machine; `changes_owner`: the row before it is of another one.
void give_row(const StreamRow& row, bool changes_owner, StackMachine& machine);

class TaskSwitches {
 public:
  static constexpr std::size_t kMostRows = std::size_t{1} << 14U;  // that wait

  class Taker {
   public:
    virtual ~Taker() = default;
    virtual void give(const StreamRow& row) = 0;
  };
  // Rows go on to `taker`, which gives them to `machine`. Both must outlive this.
  TaskSwitches(const StackMachine& machine, Taker& taker) : machine_(machine), taker_(taker) {}

  void take(StreamRow& row) {
    if (is_held_ || was_away_ || is_waiting_ || concerns(row)) [[unlikely]]
      return follow(row);
    pass(row);
  }
  // No note is held, and no row waits: rows that switch no thread are passed on as they come.
  [[nodiscard]] bool is_idle() const noexcept { return !is_held_ && !was_away_ && !is_waiting_; }
  // The machine has got a branch to `ip` without take(), which would have passed it on.
  void skip(std::uint64_t ip) noexcept { ip_ = ip; }
  // No more rows come.
  void finish();
  // No row waits for another one.
  [[nodiscard]] bool is_settled() const noexcept { return !is_waiting_; }
  [[nodiscard]] bool is_within(const StateLimits& limits) const noexcept {
    return owner_.space < limits.spaces && noted_.space < limits.spaces;
  }
  template <typename Fields>
  void fields_of_state(Fields& fields) {
    state_fields(fields, owner_);
    state_fields(fields, noted_);
    fields(is_held_);
    fields(was_away_);
    fields(ip_);
    fields(scheduler_);
  }

 private:
  // The row is a note in kernel code, or may switch.
  [[nodiscard]] bool concerns(const StreamRow& row) const noexcept;
  void pass(const StreamRow& row);
  void follow(StreamRow& row);
  void follow_note(StreamRow& row);
  [[nodiscard]] bool ends_wait(const StreamRow& row) const noexcept;
  void switch_at(const StreamRow& row, StreamRow::Switch how);
  void resolve();

  const StackMachine& machine_;
  Taker& taker_;
  Owner owner_;            // of the stack that is in use
  Owner noted_;            // by the last note
  bool is_held_ = false;   // that is another one
  bool was_away_ = false;  // a note was of another one since the last switch
  bool is_waiting_ = false;
  std::uint64_t ip_ = 0;  // where control flow is; 0: in code that is not traced
  std::uint64_t scheduler_ = 0;
  std::vector<StreamRow> waiting_;  // rows from a switch on, until a note names the thread
};

}  // namespace ptkit::tables::calls
