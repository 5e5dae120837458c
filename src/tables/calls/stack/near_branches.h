// Near calls, jumps and returns: how functions call each other, through stubs, retpolines and tail calls.
#pragma once

#include <cstdint>

#include "tables/calls/stack/suspended_stacks.h"

namespace ptkit::tables::calls {

class NearBranches {
 public:
  // Tail frames that may share a return address.
  static constexpr std::uint32_t kMostTails = 1U << 12U;

  NearBranches(CurrentStack& current, SuspendedStacks& suspended, Tails tails)
      : current_(current),
        facts_(current.code().facts()),
        edges_(current.code().edges()),
        suspended_(suspended),
        tails_(tails) {}

  void on_call(const BranchStep& step, const StreamPosition& after);
  void on_jump(const BranchStep& step, const StreamPosition& after, bool indirect);
  void on_return(const BranchStep& step, const StreamPosition& after);
  // The stub that the top frame is in, if there is any, leads to code that is not traced, or to none: the
  // function is the stub itself.
  void enter_stub_as_function(const StreamPosition& after);

 private:
  [[nodiscard]] ThreadStack& stack() noexcept { return current_.stack(); }

  [[nodiscard]] std::uint32_t import_of(const BranchStep& step);
  [[nodiscard]] std::uint32_t import_of_call(const BranchStep& step);
  void leave_by_import(const BranchStep& step, std::uint32_t function, const StreamPosition& after);
  void call(const BranchStep& step, OpenFrame& frame, const StreamPosition& after);
  void skip_rsb_stuffing() {
    if ((stack().top().open & OPEN_RSB_STUFFING) != 0) static_cast<void>(stack().cancel());
  }
  void tail(const BranchStep& step, const EdgeFacts& edge, const StreamPosition& after,
            bool is_certain = true);
  void push_tail(const BranchStep& step, const EdgeFacts& edge, const StreamPosition& after,
                 bool is_certain = true);

  [[nodiscard]] bool call_in_stub(const EdgeFacts& edge, const StreamPosition& after);
  void enter_retpoline(const EdgeFacts& edge);
  void enter_stub(const EdgeFacts& edge, Stub stub);
  void leave_stub(const BranchStep& step, const StreamPosition& after);
  void lead_on(const EdgeFacts& edge, const StreamPosition& after);
  void enter_function(const EdgeFacts& edge, const StreamPosition& after);
  [[nodiscard]] bool return_of_stub(const BranchStep& step, const StreamPosition& after);
  [[nodiscard]] bool jump_by_return(const BranchStep& step, const StreamPosition& after);
  [[nodiscard]] bool leave_thunk(const BranchStep& step, const StreamPosition& after);
  [[nodiscard]] bool is_thunk(const BranchStep& step, const StreamPosition& after);
  [[nodiscard]] bool end_interrupted_thunk(const StreamPosition& after);

  void return_elsewhere(const BranchStep& step, const StreamPosition& after, bool in_stub);
  void resume_caller(const BranchStep& step, const StreamPosition& after);
  void leave_handler(const BranchStep& step, const StreamPosition& after);
  void return_to_untraced(const BranchStep& step, const StreamPosition& after);
  void go_on_elsewhere(const BranchStep& step, const EdgeFacts& edge, const StreamPosition& after);
  [[nodiscard]] bool is_pushed_target(const BranchStep& step);
  [[nodiscard]] bool is_unexpected() noexcept;

  CurrentStack& current_;
  CodeFacts& facts_;
  EdgeCache& edges_;
  SuspendedStacks& suspended_;
  Tails tails_;
};

}  // namespace ptkit::tables::calls
