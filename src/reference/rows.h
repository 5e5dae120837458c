// Single instructions to blocks and branches: what libipt does not say itself.
#pragma once

#include <optional>
#include <vector>

#include "flow/sink.h"

namespace ptkit::reference {

struct Step {
  std::uint64_t ip = 0;
  flow::BlockInsn insn;
  insn::ExecMode mode = insn::ExecMode::BITS64;
  std::uint8_t flags = 0;  // IN_TX
};

// A branch's target is where control was seen next: at the next instruction, or at the IP of the event that
// came first. Events that come while a branch waits for its target wait with it, so that rows keep their
// order.
class RowBuilder {
 public:
  explicit RowBuilder(flow::FlowSink& sink) noexcept : sink_(sink) {}

  void on_instruction(const Step& step, flow::Place place);
  void on_event(const flow::Event& event);
  // Control went to `ip`, of which nothing more is known.
  void arrive(std::uint64_t ip) {
    end_block();
    resolve(ip);
  }
  // The last branch was executed, but what came after it was not seen: its target is not known.
  void leave() {
    end_block();
    resolve(std::nullopt);
  }
  // Ends the open block and lets go of a branch: nothing says that it was executed.
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

// The kind of branch row that an instruction makes; empty if it is no branch.
[[nodiscard]] std::optional<flow::BranchKind> branch_kind(const flow::BlockInsn& insn) noexcept;

}  // namespace ptkit::reference
