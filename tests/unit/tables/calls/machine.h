// A machine that executes branches by hand, on code of which the functions are given.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "tables/calls/stack/stack_machine.h"

namespace ptkit::tables::calls {

// Functions of 0x100 bytes at multiples of 0x100. Each instruction has 4 bytes.
class GivenCode final : public CodeFacts {
 public:
  static constexpr std::uint64_t kSize = 0x100;
  static constexpr std::uint64_t kInsn = 4;
  static constexpr std::uint32_t kFirstThread = kFirstFunction + 0x1000;  // behind the functions of code

  CodeVersion follow(trace::SpaceId, std::uint64_t) override { return {}; }
  [[nodiscard]] CodeLocation at(std::uint64_t ip) override {
    constexpr std::uint64_t kKernelFunctions = 0x800;
    const std::uint64_t number = (ip / kSize & (kKernelFunctions - 1)) + (ip >> 63U) * kKernelFunctions;
    if (unknown.contains(ip / kSize * kSize)) return {ip, kUnknownFunction, 0};
    CodeLocation location{ip / kSize * kSize, kFirstFunction + static_cast<std::uint32_t>(number),
                          CODE_KNOWN};
    if (ip % kSize == 0) location.flags |= CODE_ENTRY;
    if (const auto found = flags.find(location.entry); found != flags.end()) location.flags |= found->second;
    if (pads.contains(ip)) location.flags |= CODE_LANDING_PAD;
    return location;
  }
  [[nodiscard]] std::uint32_t function_at(std::uint64_t ip) override { return at(ip).function; }
  [[nodiscard]] std::uint32_t function_of_thread(std::int64_t tid) override {
    return kFirstThread + static_cast<std::uint32_t>(tid);
  }
  [[nodiscard]] std::uint32_t import_at(std::uint64_t ip) override {
    const auto found = imports.find(ip);
    return found == imports.end() ? kUnknownFunction : found->second;
  }
  [[nodiscard]] bool has_code(std::uint64_t ip) override { return !untraced.contains(at(ip).entry); }
  [[nodiscard]] std::uint64_t end_of(std::uint64_t ip) override { return ip + kInsn; }
  [[nodiscard]] bool is_retpoline_call(std::uint64_t ip) override { return retpoline_calls.contains(ip); }
  [[nodiscard]] bool begins_retpoline(std::uint64_t ip) override { return retpolines.contains(ip); }
  [[nodiscard]] bool follows_call(std::uint64_t ip) override { return !not_behind_calls.contains(ip); }
  [[nodiscard]] bool is_far_call(std::uint64_t ip) override { return far_calls.contains(ip); }
  [[nodiscard]] bool loads_stack_pointer(std::uint64_t, std::uint64_t ip) override {
    return loads.contains(at(ip).entry);
  }
  [[nodiscard]] std::optional<std::uint64_t> landing_pad_of(std::uint64_t ip) override {
    for (const auto& [pad, call] : pads) {
      if (call == ip) return pad;
    }
    return std::nullopt;
  }

  std::map<std::uint64_t, std::uint32_t> flags;    // by entry
  std::map<std::uint64_t, std::uint32_t> imports;  // functions of import slots, by branch
  std::set<std::uint64_t> retpoline_calls;
  std::set<std::uint64_t> retpolines;
  std::map<std::uint64_t, std::uint64_t> pads;  // landing pads, and their calls
  std::set<std::uint64_t> not_behind_calls;
  std::set<std::uint64_t> far_calls;
  std::set<std::uint64_t> unknown;   // entries of what is no function
  std::set<std::uint64_t> untraced;  // entries of functions without code
  std::set<std::uint64_t> loads;     // entries of functions that load the stack pointer
};

// Functions of GivenCode.
inline constexpr std::uint64_t kMain = 0x1000;
inline constexpr std::uint64_t kF = 0x2000;
inline constexpr std::uint64_t kG = 0x3000;
inline constexpr std::uint64_t kH = 0x4000;

class Frames final : public FrameSink {
 public:
  void on_frame(const Frame& frame, const Owner& owner) override {
    if (next != nullptr) next->on_frame(frame, owner);
    frames.push_back(frame);
    owners.push_back(owner);
  }
  void on_anomaly(const Anomaly& anomaly, const Owner&) override { anomalies.push_back(anomaly); }
  // The frame of the function with this entry; the last one that ended.
  [[nodiscard]] const Frame& of(std::uint64_t entry) const {
    static const Frame kNone = [] {
      Frame none;
      none.id = UINT64_MAX;
      return none;
    }();
    for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) {
      if (frame->entry_ip == entry) return *frame;
    }
    return kNone;
  }

  FrameSink* next = nullptr;  // gets the frames, too, as they come
  std::vector<Frame> frames;
  std::vector<Owner> owners;
  std::vector<Anomaly> anomalies;
};

// Executes branches. Before each, `insns` instructions are executed, the branch included.
class Program {
 public:
  explicit Program(Tails tails = Tails::NESTED, MoreGroups* groups = nullptr)
      : machine(code, frames, tails, groups) {}

  void branch(flow::BranchKind kind, std::uint64_t from, std::optional<std::uint64_t> to,
              std::uint64_t insns = 10) {
    go_on(insns - 1);
    const BranchStep step = step_of(kind, from, to);
    const PlainBranch plain{step.from_ip, step.to_ip, step.kind, step.flags};
    if (tries_plain && machine.on_plain_branch(plain, [&step] { return step.position; })) {
      ++plain_branches;
    } else {
      machine.on_branch(step);
    }
    end_branch();
  }
  // __switch_to() returns on the stack of `owner`.
  void switch_task(std::uint64_t from, std::uint64_t to, const Owner& owner) {
    machine.on_task_switch(step_of(flow::BranchKind::RETURN, from, to), owner);
    end_branch();
  }
  [[nodiscard]] BranchStep step_of(flow::BranchKind kind, std::uint64_t from,
                                   std::optional<std::uint64_t> to) const {
    BranchStep step;
    step.position = position;
    step.from_ip = from;
    step.to_ip = to.value_or(0);
    step.kind = kind;
    step.flags = flow::FROM_KNOWN | flow::TAKEN;
    if (to) step.flags |= flow::TO_KNOWN;
    if (in_tx) step.flags |= flow::IN_TX;
    return step;
  }
  // The next row comes after a branch.
  void end_branch() {
    go_on(1);
    ++position.branches;
    position.offset += 2;
  }
  void call(std::uint64_t from, std::uint64_t to) { branch(flow::BranchKind::CALL, from, to); }
  void jump(std::uint64_t from, std::uint64_t to) { branch(flow::BranchKind::JUMP, from, to); }
  void jump_indirect(std::uint64_t from, std::uint64_t to) {
    branch(flow::BranchKind::JUMP_INDIRECT, from, to);
  }
  void ret(std::uint64_t from, std::uint64_t to) { branch(flow::BranchKind::RETURN, from, to); }
  void syscall(std::uint64_t from) { branch(flow::BranchKind::SYSCALL, from, std::nullopt); }
  void async(std::uint64_t from) {
    --position.branches;
    --position.instructions;
    --position.stream_instructions;
    branch(flow::BranchKind::ASYNC, from, std::nullopt, 1);
  }
  void enable(std::uint64_t ip) { machine.on_enabled(ip, position); }
  // `instructions` more were executed at the end.
  void finish(std::uint64_t instructions = 5) {
    go_on(instructions);
    machine.finish(position);
  }
  // Executes instructions.
  void go_on(std::uint64_t instructions) {
    position.instructions += instructions;
    position.stream_instructions += instructions;
  }
  [[nodiscard]] std::uint64_t self_sum() const {
    std::uint64_t sum = 0;
    for (const Frame& frame : frames.frames) sum += frame.self_instructions;
    return sum;
  }

  GivenCode code;
  Frames frames;
  StackMachine machine;
  StreamPosition position;
  bool in_tx = false;
  bool tries_plain = false;        // before on_branch()
  std::size_t plain_branches = 0;  // that were none of on_branch()
};

}  // namespace ptkit::tables::calls
