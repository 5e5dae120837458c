// A sink that keeps all rows, for tests.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "flow/rows/sink.h"

namespace ptkit::flow {

struct KeptBlock {
  StreamSpan span;
  std::uint64_t ip = 0;
  std::vector<BlockInsn> insns;
  std::uint32_t size = 0;
  code::insn::ExecMode mode = code::insn::ExecMode::UNKNOWN;
  std::uint8_t flags = 0;
};

class Collect : public FlowSink {
 public:
  void on_context(const Context& row) override { contexts.push_back(row); }
  void on_block(const Block& row) override {
    blocks.push_back({row.span, row.ip, {row.insns.begin(), row.insns.end()}, row.size, row.mode, row.flags});
    log += "block " + hex(row.ip) + " " + std::to_string(row.insns.size()) + "\n";
    check(row.span);
    std::uint64_t at = row.ip;
    for (const BlockInsn& insn : row.insns) {
      ips.push_back(at);
      at += insn.size;
    }
  }
  void on_branch(const Branch& row) override {
    branches.push_back(row);
    log += "branch " + hex(row.from_ip) + " " + hex(row.to_ip) + "\n";
    check(row.span);
  }
  void on_event(const Event& row) override {
    events.push_back(row);
    log += "event " + std::to_string(static_cast<int>(row.kind)) + "\n";
    check(row.span);
  }
  void on_error(const FlowError& row) override {
    errors.push_back(row);
    log += "error " + std::string(base::status_name(row.code)) + "\n";
    check(row.span);
  }
  void on_gap(const Gap& row) override {
    gaps.push_back(row);
    log += "gap " + std::to_string(static_cast<int>(row.cause)) + "\n";
  }

  [[nodiscard]] static std::string hex(std::uint64_t value) {
    char text[20];
    std::snprintf(text, sizeof(text), "%llx", static_cast<unsigned long long>(value));
    return text;
  }

  std::vector<Context> contexts;
  std::vector<KeptBlock> blocks;
  std::vector<Branch> branches;
  std::vector<Event> events;
  std::vector<FlowError> errors;
  std::vector<Gap> gaps;
  std::vector<std::uint64_t> ips;  // of all instructions
  std::string log;                 // all rows but contexts, in order
  bool spans_in_order = true;

 private:
  void check(const StreamSpan& span) {
    if (span.since > span.offset || span.since < last_.since || span.offset < last_.offset)
      spans_in_order = false;
    last_ = span;
  }
  StreamSpan last_;
};

}  // namespace ptkit::flow
