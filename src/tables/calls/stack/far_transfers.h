// Far transfers: system calls, interrupts, signals, and code that is not traced. There user code stops and
// goes on.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tables/calls/stack/near_branches.h"

namespace ptkit::tables::calls {

class FarTransfers {
 public:
  FarTransfers(CurrentStack& current, SuspendedStacks& suspended, NearBranches& near_branches)
      : current_(current),
        facts_(current.code().facts()),
        edges_(current.code().edges()),
        suspended_(suspended),
        near_(near_branches) {}

  // A system call, or an instruction that interrupts. Without the kernel's code it is a leaf.
  void on_leaf(const BranchStep& step, const StreamPosition& after, CallKind how);
  void on_async(const BranchStep& step, const StreamPosition& after);
  void on_abort(const BranchStep& step, const StreamPosition& after);
  // A return from the kernel, or within it: ends the frames of the innermost entry that waits for it.
  void on_kernel_return(const BranchStep& step, const StreamPosition& after);
  void on_far_call(const BranchStep& step, const StreamPosition& after);
  void on_far_jump(const BranchStep& step, const StreamPosition& after);
  // A far return, or an IRET: from the kernel, or from a far call, or to an address that was pushed.
  void on_far_return(const BranchStep& step, const StreamPosition& after);
  // Packets are enabled at `step.to_ip`: code that is not traced has run before.
  void on_enabled(const BranchStep& step, const StreamPosition& position);

 private:
  [[nodiscard]] ThreadStack& stack() noexcept { return current_.stack(); }

  [[nodiscard]] bool return_from_kernel(const BranchStep& step, const StreamPosition& after);
  void return_within_kernel(const BranchStep& step, const StreamPosition& after);
  [[nodiscard]] bool go_back_far(const BranchStep& step, const StreamPosition& after);
  void end_program(const BranchStep& step, const StreamPosition& after);

  [[nodiscard]] std::size_t kernel_entry(std::uint64_t ip) noexcept;
  void enter_user(const BranchStep& step, const StreamPosition& position);
  void return_from_leaf(std::size_t leaf, const BranchStep& step, const StreamPosition& position);
  // The instruction that was interrupted, or made a system call.
  struct Interrupted {
    std::uint64_t ip = 0;
    std::uint64_t next_ip = 0;     // where code goes on after a handler
    std::uint64_t restart_ip = 0;  // or else, where the system call is repeated
  };
  void enter_handler(const Interrupted& interrupted, const BranchStep& step, const StreamPosition& position);
  [[nodiscard]] OpenFrame signal_frame(std::uint64_t ip, std::uint64_t next_ip, std::uint64_t restart_ip);
  void renew_entry(std::uint64_t ip, const StreamPosition& position);
  [[nodiscard]] bool end_signal(std::uint64_t ip, bool by_syscall, const BranchStep& step,
                                const StreamPosition& position);
  void next_signal(std::uint64_t ip, const StreamPosition& position);
  void go_on_at(const BranchStep& step, const StreamPosition& position);
  void enter_from_untraced(std::uint64_t ip, const StreamPosition& position);

  CurrentStack& current_;
  CodeFacts& facts_;
  EdgeCache& edges_;
  SuspendedStacks& suspended_;
  NearBranches& near_;
};

}  // namespace ptkit::tables::calls
