// Builds blocks and branches from single instructions.
#pragma once

#include <optional>
#include <vector>

#include "flow/rows/sink.h"

namespace ptkit::flow::libipt {

struct ExecutedInsn {
  std::uint64_t ip = 0;
  flow::BlockInsn insn;
  code::insn::ExecMode mode = code::insn::ExecMode::BITS64;
  std::uint8_t flags = 0;  // IN_TX
};

// The target of a branch is the next instruction, or the IP of an event before that. Events after a branch
// without target are delayed with the branch, so that rows keep their order.
class RowBuilder {
 public:
  explicit RowBuilder(flow::FlowSink& sink) noexcept : sink_(sink) {}

  void on_instruction(const ExecutedInsn& step, flow::StreamSpan span);
  void on_event(const flow::Event& event);
  // Control went to `ip`; the code there is not known.
  void arrive(std::uint64_t ip) {
    end_block();
    resolve(ip);
  }
  // The last branch was executed, but its target was not traced.
  void leave() {
    end_block();
    resolve(std::nullopt);
  }
  // Ends the open block and discards a branch that may not have been executed.
  void drop();

  [[nodiscard]] std::optional<std::uint64_t> last_ip() const noexcept { return last_ip_; }

 private:
  struct Pending {
    flow::Branch branch;
    std::uint64_t next_ip = 0;
  };

  void end_block();
  void resolve(std::optional<std::uint64_t> to);
  void release_events();
  void resolve_by(const flow::Event& event);
  void emit_asynchronous(const flow::Event& event);

  flow::FlowSink& sink_;
  std::vector<flow::BlockInsn> insns_;
  std::vector<flow::Event> waiting_;
  std::optional<Pending> pending_;
  std::optional<std::uint64_t> last_ip_;
  std::optional<std::uint64_t> aborted_at_;
  flow::Block block_;
};

// The kind of the branch row of an instruction; empty: no branch.
[[nodiscard]] std::optional<flow::BranchKind> branch_kind(const flow::BlockInsn& insn) noexcept;

}  // namespace ptkit::flow::libipt
