// Branches, gaps and switches of threads that no program makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>

#include "unit/calls/machine.h"

namespace ptkit::calls {

// A window begins and ends before the rows with these numbers. Nothing follows its end.
struct RowWindow {
  std::size_t begin = 0;
  std::size_t end = SIZE_MAX;
};

inline void run_random(Program& program, std::uint32_t seed, std::size_t branches,
                       std::optional<RowWindow> window = std::nullopt) {
  if (window) program.machine.set_window();
  program.code.flags[0x300] = CODE_STUB;
  program.code.flags[0x400] = CODE_SETJMP;
  program.code.flags[0x500] = CODE_RESOLVER;
  program.code.flags[0x600] = CODE_RETURN;
  program.code.flags[0x700] = CODE_COLD;
  program.code.flags[0x800] = CODE_SWITCH;
  program.code.flags[0x900] = CODE_SWITCH | CODE_LEAVE;
  program.code.flags[0xa00] = CODE_PARK;
  constexpr std::uint64_t kKernel = std::uint64_t{1} << 63U;
  program.code.flags[kKernel + 0x300] = CODE_TASK_SWITCH;
  program.code.flags[kKernel + 0x400] = CODE_SCHEDULER;
  program.code.flags[kKernel + 0x500] = CODE_TASK_END;
  program.code.flags[0xb00] = CODE_STUB | CODE_THUNK;
  program.code.retpoline_calls = {0x108, 0xb04};
  program.code.retpolines = {0x104};
  program.code.pads[0x208] = 0x104;
  std::mt19937 random(seed);
  const auto below = [&random](std::uint64_t limit) { return random() % limit; };
  // One number after the other: compilers call the functions of one expression in different orders.
  const auto address = [&] {
    const std::uint64_t kernel = below(8) == 0 ? kKernel : 0;
    const std::uint64_t function = below(24) * GivenCode::kSize;
    const std::uint64_t instruction = below(4) * GivenCode::kInsn;
    return kernel + function + (below(3) == 0 ? 0 : instruction);
  };
  for (std::size_t i = 0; i < branches; ++i) {
    if (window && window->begin == i) program.machine.on_limit(0, program.place);
    if (window && window->end == i) return program.machine.on_limit(1, program.place);
    const std::uint64_t what = below(40);
    if (what == 0) {
      program.machine.on_gap(program.place, program.place);
    } else if (what == 1) {
      program.enable(address());
    } else if (what == 2) {
      const auto thread = static_cast<std::int64_t>(below(3));
      const auto space = static_cast<trace::SpaceId>(below(2));
      program.machine.on_owner({0, 1, thread, space}, program.place);
    } else if (what == 3 && below(2) == 0) {
      const Owner owner{0, 1, static_cast<std::int64_t>(below(3)), 0};
      if (below(2) == 0) {
        const std::uint64_t from = address();
        program.switch_task(from, address(), owner);
      } else {
        program.machine.on_task_enabled(address(), program.place, owner);
      }
    } else if (what == 3) {
      program.machine.on_leave(program.place);
      program.machine.on_owner({0, 1, 1, 0}, program.place);
    } else {
      program.in_tx = below(16) == 0;
      const auto kind = static_cast<flow::BranchKind>(below(17));
      const std::uint64_t from = address();
      const auto to = below(16) != 0 ? std::optional(address()) : std::nullopt;
      program.branch(kind, from, to, 1 + below(3));
    }
  }
}

}  // namespace ptkit::calls
