// Branches, gaps and switches of threads that no program makes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <random>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "unit/tables/calls/machine.h"

namespace ptkit::tables::calls {

// A window begins and ends before the rows with these numbers. Nothing follows its end.
struct RowWindow {
  std::size_t begin = 0;
  std::size_t end = SIZE_MAX;
};

inline constexpr StateLimits kNoLimits{UINT32_MAX, UINT32_MAX, UINT64_MAX};

// Another machine goes on before the first row from `row` on at which the stacks can be saved.
struct Resumption {
  std::size_t row = 0;
  Program& program;
  std::vector<std::uint8_t> state{};  // that it was given; empty: none
  bool is_restored = false;
};

inline constexpr std::uint64_t kKernelCode = std::uint64_t{1} << 63U;

inline void give_code(Program& program) {
  program.code.flags[0x300] = CODE_STUB;
  program.code.flags[0x400] = CODE_SETJMP;
  program.code.flags[0x500] = CODE_RESOLVER;
  program.code.flags[0x600] = CODE_RETURN;
  program.code.flags[0x700] = CODE_COLD;
  program.code.flags[0x800] = CODE_SWITCH;
  program.code.flags[0x900] = CODE_SWITCH | CODE_LEAVE;
  program.code.flags[0xa00] = CODE_MCALL;
  program.code.flags[kKernelCode + 0x300] = CODE_TASK_SWITCH;
  program.code.flags[kKernelCode + 0x400] = CODE_SCHEDULER;
  program.code.flags[kKernelCode + 0x500] = CODE_TASK_END;
  program.code.flags[0xb00] = CODE_STUB | CODE_THUNK;
  program.code.retpoline_calls = {0x108, 0xb04};
  program.code.retpolines = {0x104};
  program.code.pads[0x208] = 0x104;
}

// False: the stacks cannot be saved here.
inline bool resume(Program& before, Resumption& resumption) {
  base::FieldWriter written;
  if (!before.machine.save(written)) return false;
  resumption.state = std::move(written.bytes());
  Program& program = resumption.program;
  give_code(program);
  program.position = before.position;
  program.machine.set_window();
  base::FieldReader fields(resumption.state);
  resumption.is_restored = program.machine.restore(fields, kNoLimits) && fields.rest().empty();
  return resumption.is_restored;
}

inline void run_random(Program& first, std::uint32_t seed, std::size_t branches,
                       std::optional<RowWindow> window = std::nullopt, Resumption* resumption = nullptr) {
  Program* now = &first;
  if (window && resumption == nullptr) first.machine.set_window();
  give_code(first);
  std::mt19937 random(seed);
  const auto below = [&random](std::uint64_t limit) { return random() % limit; };
  // One number after the other: compilers call the functions of one expression in different orders.
  const auto address = [&] {
    const std::uint64_t kernel = below(8) == 0 ? kKernelCode : 0;
    const std::uint64_t function = below(24) * GivenCode::kSize;
    const std::uint64_t instruction = below(4) * GivenCode::kInsn;
    return kernel + function + (below(3) == 0 ? 0 : instruction);
  };
  for (std::size_t i = 0; i < branches; ++i) {
    const bool resumes = resumption != nullptr && now == &first && i >= resumption->row;
    if (resumes && resume(first, *resumption)) now = &resumption->program;
    if (window && window->begin == i) now->machine.on_limit(0, now->position);
    if (window && window->end == i) return now->machine.on_limit(1, now->position);
    const std::uint64_t what = below(40);
    if (what == 0) {
      now->machine.on_gap(now->position, now->position);
    } else if (what == 1) {
      now->enable(address());
    } else if (what == 2) {
      const auto thread = static_cast<std::int64_t>(below(3));
      const auto space = static_cast<trace::SpaceId>(below(2));
      now->machine.on_owner({0, 1, thread, space}, now->position);
    } else if (what == 3 && below(2) == 0) {
      const Owner owner{0, 1, static_cast<std::int64_t>(below(3)), 0};
      if (below(2) == 0) {
        const std::uint64_t from = address();
        now->switch_task(from, address(), owner);
      } else {
        now->machine.on_task_enabled(address(), now->position, owner);
      }
    } else if (what == 3) {
      now->machine.on_leave(now->position);
      now->machine.on_owner({0, 1, 1, 0}, now->position);
    } else {
      now->in_tx = below(16) == 0;
      const auto kind = static_cast<flow::BranchKind>(below(17));
      const std::uint64_t from = address();
      const auto to = below(16) != 0 ? std::optional(address()) : std::nullopt;
      now->branch(kind, from, to, 1 + below(3));
    }
  }
}

// Calls, returns to the caller, tail calls and jumps of a program, and all that run_random() makes.
inline void run_mixed(Program& program, std::uint32_t seed) {
  constexpr std::uint32_t kRounds = 40;
  constexpr std::size_t kBranches = 60;
  std::mt19937 random(seed);
  const auto below = [&random](std::uint64_t limit) { return random() % limit; };
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    run_random(program, seed * kRounds + round, 8);
    for (std::size_t i = 0; i < kBranches; ++i) {
      const std::uint64_t what = below(8);
      const std::uint64_t from = kMain + below(8) * GivenCode::kSize + below(8) * GivenCode::kInsn;
      const std::uint64_t entry = kF + below(16) * GivenCode::kSize;
      const ThreadStack& stack = program.machine.current();
      if (what < 3) {
        program.branch(what == 0 ? flow::BranchKind::CALL_INDIRECT : flow::BranchKind::CALL, from, entry);
      } else if (what < 6 && !stack.empty() && (stack.top().flags & FRAME_RETURN) != 0) {
        program.ret(from, stack.top().return_ip);
      } else if (what == 6) {
        program.branch(below(2) == 0 ? flow::BranchKind::COND : flow::BranchKind::JUMP, from, entry);
      } else {
        program.jump_indirect(from, from / GivenCode::kSize * GivenCode::kSize + 8);
      }
    }
  }
  program.finish();
}

}  // namespace ptkit::tables::calls
