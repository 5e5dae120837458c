// A small decoder of control flow that shares no code with src/flow: it walks a program whose instructions it
// knows, by the packets alone, and says what happened. It follows the manual's rules literally and gives up
// at the first surprise.
#pragma once

#include <deque>
#include <optional>
#include <string>
#include <vector>

#include "packet/packet.h"
#include "unit/support/traces/walk.h"

namespace ptkit::walk {

class Interpreter {
 public:
  Interpreter(const Program& program, const std::vector<packet::Packet>& packets,
              bool pops_uncompressed = true)
      : program_(program), pops_uncompressed_(pops_uncompressed) {
    for (const packet::Packet& p : packets) {
      if (!is_time(p.kind)) packets_.push_back(p);
    }
  }

  // Steps without times. Empty `error` on success.
  std::vector<Step> run() {
    while (error.empty() && !done_) {
      if (!enabled_) {
        resume();
      } else if (tnt_.empty() && event()) {
        continue;
      } else {
        execute();
      }
    }
    return std::move(steps_);
  }

  std::string error;
  std::uint64_t psbs = 0;
  std::uint64_t compressed_returns = 0;

 private:
  using Kind = packet::PacketKind;

  static bool is_time(Kind kind) {
    return kind == Kind::TSC || kind == Kind::TMA || kind == Kind::MTC || kind == Kind::CYC ||
           kind == Kind::CBR || kind == Kind::PAD;
  }
  [[nodiscard]] bool at_end() const { return next_ >= packets_.size(); }
  [[nodiscard]] const packet::Packet& peek(std::size_t ahead = 0) const {
    static const packet::Packet kNone{};
    return next_ + ahead < packets_.size() ? packets_[next_ + ahead] : kNone;
  }
  void fail(const std::string& what) {
    error = what + " at offset " + std::to_string(peek().offset) + " after " + std::to_string(steps_.size()) +
            " steps";
  }
  void add(Step step) { steps_.push_back(step); }

  // Packets are off: only PSB+, OVF and TIP.PGE make sense.
  void resume() {
    if (at_end()) {
      done_ = true;
      return;
    }
    const packet::Packet& p = peek();
    switch (p.kind) {
      case Kind::PSB: {
        const std::optional<std::uint64_t> fup = skip_psb_plus();
        if (fup) fail("FUP in PSB+ while packets are off");
        return;
      }
      case Kind::MODE_EXEC:
        ++next_;
        return;
      case Kind::TIP_PGE:
        enabled_ = true;
        ip_ = p.ip;
        ++next_;
        if (begun_) add({.kind = StepKind::RESUME, .to = ip_});
        begun_ = true;
        return;
      default:
        return fail("unexpected packet while off");
    }
  }

  std::optional<std::uint64_t> skip_psb_plus() {
    std::optional<std::uint64_t> fup;
    ++psbs;
    while (!at_end() && peek().kind != Kind::PSBEND) {
      if (peek().kind == Kind::FUP) fup = peek().ip;
      ++next_;
    }
    ++next_;
    calls_.clear();
    return fup;
  }

  [[nodiscard]] std::uint64_t psb_ip() const {
    for (std::size_t i = 0; peek(i).kind != Kind::PSBEND && next_ + i < packets_.size(); ++i) {
      if (peek(i).kind == Kind::FUP) return peek(i).ip;
    }
    return 0;
  }

  // Events that are bound to the IP at which we stand; true if one was taken.
  bool event() {
    const packet::Packet& p = peek();
    switch (p.kind) {
      case Kind::PSB:
        if (psb_ip() != ip_) return false;
        skip_psb_plus();
        return true;
      case Kind::FUP:
        if (p.ip != ip_) return false;
        asynchronous();
        return true;
      case Kind::OVF:
        ++next_;
        ip_ = peek().ip;
        if (peek().kind != Kind::FUP) fail("OVF without FUP");
        ++next_;
        calls_.clear();
        add({.kind = StepKind::OVERFLOW, .to = ip_});
        return true;
      default:
        return false;
    }
  }

  void asynchronous() {
    const std::uint64_t from = ip_;
    ++next_;
    if (peek().kind == Kind::MODE_EXEC) ++next_;
    if (peek().kind == Kind::TIP) {
      ip_ = peek().ip;
      add({.kind = StepKind::ASYNC, .from = from, .to = ip_});
    } else if (peek().kind == Kind::TIP_PGD) {
      enabled_ = false;
      calls_.clear();
      add({.kind = StepKind::ASYNC_OUT, .from = from});
    } else {
      fail("FUP without TIP");
    }
    ++next_;
  }

  void execute() {
    const auto found = program_.insns.find(ip_);
    if (found == program_.insns.end()) return fail("no instruction here");
    const Insn& insn = found->second;
    Step step;
    step.from = ip_;
    step.next_ip = ip_ + insn.size;
    ip_ = step.next_ip;
    if (insn.op == Op::NOP) return;
    act(insn, step);
    if (done_ || !error.empty()) return;
    step.to = ip_;
    add(step);
  }

  void act(const Insn& insn, Step& step) {
    switch (insn.op) {
      case Op::JCC:
        step.kind = StepKind::COND;
        step.taken = bit();
        if (step.taken) ip_ = insn.target;
        return;
      case Op::JMP:
        step.kind = StepKind::JUMP;
        ip_ = insn.target;
        return;
      case Op::CALL:
        step.kind = StepKind::CALL;
        if (insn.target != step.next_ip) push(step.next_ip);
        ip_ = insn.target;
        return;
      case Op::CALL_INDIRECT:
        step.kind = StepKind::CALL_INDIRECT;
        push(step.next_ip);
        ip_ = tip();
        return;
      case Op::JMP_INDIRECT:
        step.kind = StepKind::JUMP_INDIRECT;
        ip_ = tip();
        return;
      case Op::IRET:
        step.kind = StepKind::IRET;
        ip_ = tip();
        return;
      case Op::RET:
        step.kind = StepKind::RETURN;
        ip_ = return_target();
        return;
      case Op::SYSCALL:
        step.kind = StepKind::SYSCALL;
        if (peek().kind != Kind::TIP_PGD) return fail("no TIP.PGD for SYSCALL");
        ++next_;
        enabled_ = false;
        calls_.clear();
        return;
      default:
        return written(step);
    }
  }

  void written(Step& step) {
    step.kind = StepKind::PTWRITE;
    if (peek().kind != Kind::PTW) return fail("no PTW");
    step.value = peek().payload;
    const bool bound = (peek().flags & packet::Packet::IP_BIT) != 0;
    ++next_;
    if (!bound) return;
    if (peek().kind != Kind::FUP || peek().ip != step.from) return fail("PTW is bound elsewhere");
    ++next_;
  }

  bool bit() {
    if (tnt_.empty()) fetch_tnt();
    if (tnt_.empty()) {
      fail("no TNT bit");
      return false;
    }
    const bool taken = tnt_.front();
    tnt_.pop_front();
    return taken;
  }

  void fetch_tnt() {
    if (peek().kind != Kind::TNT_8 && peek().kind != Kind::TNT_64) return;
    for (std::uint64_t i = 0; i < peek().payload2; ++i) tnt_.push_back((peek().payload >> i & 1) != 0);
    ++next_;
  }

  // TIPs that were deferred come after the TNT packet.
  std::uint64_t tip() {
    if (tnt_.empty()) fetch_tnt();
    if (peek().kind == Kind::MODE_EXEC) ++next_;
    if (peek().kind != Kind::TIP) {
      fail("no TIP");
      return 0;
    }
    return packets_[next_++].ip;
  }

  std::uint64_t return_target() {
    if (tnt_.empty()) fetch_tnt();
    const std::uint64_t expected = calls_.empty() ? 0 : calls_.back();
    const bool known = !calls_.empty();
    if (!tnt_.empty()) {
      if (!known || !tnt_.front()) fail("compressed return without a call");
      tnt_.pop_front();
      if (known) calls_.pop_back();
      ++compressed_returns;
      return expected;
    }
    if (known && pops_uncompressed_) calls_.pop_back();
    return tip();
  }

  void push(std::uint64_t ip) {
    calls_.push_back(ip);
    if (calls_.size() > 64) calls_.pop_front();
  }

  const Program& program_;
  std::vector<packet::Packet> packets_;
  std::vector<Step> steps_;
  std::deque<bool> tnt_;
  std::deque<std::uint64_t> calls_;
  std::size_t next_ = 0;
  std::uint64_t ip_ = 0;
  bool enabled_ = false;
  bool begun_ = false;
  bool done_ = false;
  bool pops_uncompressed_;
};

}  // namespace ptkit::walk
