// Far calls, jumps and returns within user code, or within the kernel: mostly to code of another size.
#include <algorithm>

#include "base/addresses.h"
#include "tables/calls/stack/stack_machine.h"

namespace ptkit::tables::calls {

void StackMachine::on_far_call(const Step& step, const StreamPosition& after) {
  const bool calls = step.to_known() && step.from_known() && facts_.is_far_call(step.from_ip);
  if (calls) return on_call(step, after);
  on_leaf(step, after, CallKind::INTERRUPT);
}

// A far return, or an IRET: from the kernel, or from a far call, or to an address that was pushed.
void StackMachine::on_far_return(const Step& step, const StreamPosition& after) {
  const auto in_kernel = [](std::uint64_t ip) { return ip >= base::kKernelHalf; };
  const bool leaves_kernel =
      !step.from_known() || !step.to_known() || in_kernel(step.from_ip) != in_kernel(step.to_ip);
  const bool is_interrupt = step.kind == flow::BranchKind::IRET && in_kernel(step.from_ip);
  if (leaves_kernel || is_interrupt) return on_kernel_return(step, after);
  if (stack().empty() || return_from_kernel(step, after)) return;
  on_far_jump(step, after);
}

void StackMachine::on_far_jump(const Step& step, const StreamPosition& after) {
  if (stack().empty() || !step.to_known()) return;
  enter_stub_as_function(after);
  if (stack().top().returns_to(step.to_ip)) return end_call(step.to_ip, after);
  if (go_back_far(step, after)) return;
  on_jump(step, after, true);
}

// Goes on behind a far transfer, or elsewhere in the function that made it: what that entered has ended.
bool StackMachine::go_back_far(const Step& step, const StreamPosition& after) {
  constexpr std::size_t kMostAbove = 64;
  const CodeLocation code = facts_.at(step.to_ip);
  const std::size_t least = stack().size() - std::min(stack().size(), kMostAbove);
  for (std::size_t i = stack().size(); i-- > std::max<std::size_t>(least, 1);) {
    const OpenFrame& entered = stack().at(i);
    if ((entered.open & OPEN_FAR) == 0) continue;
    const bool is_behind = facts_.end_of(entered.call_ip) == step.to_ip;
    const bool is_within =
        code.is(CODE_KNOWN) && !code.is(CODE_ENTRY) && stack().at(i - 1).function == code.function;
    if (!is_behind && !is_within) continue;
    const bool is_top = i + 1 == stack().size();
    stack().pop_to(i + 1, CallEnd::UNWIND, after, false);
    stack().pop_to(i, CallEnd::RETURN, after, is_top);
    return true;
  }
  return false;
}

}  // namespace ptkit::tables::calls
