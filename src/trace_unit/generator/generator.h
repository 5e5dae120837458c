// The state of a trace unit and the packets that follow from it. PacketGenerator (packet_generator.h) says
// what happened; this file knows in which order packets come out: pending TNT bits first, CYC before what it
// times, MODE before the IP it belongs to, PSB+ when due.
#pragma once

#include <optional>
#include <vector>

#include "packet/packet.h"
#include "trace_unit/generator/config.h"
#include "trace_unit/generator/fast_encoder.h"
#include "trace_unit/generator/return_stack.h"
#include "trace_unit/generator/timing.h"
#include "trace_unit/generator/tnt_buffer.h"
#include "trace_unit/generator/writer.h"

namespace ptkit::trace_unit::generator {

// Execution mode as MODE.Exec tells it.
struct ExecState {
  bool cs_l = true;
  bool cs_d = false;
  bool interrupt_flag = false;
  friend bool operator==(const ExecState&, const ExecState&) = default;
};

// CR3 and VMX operation as PIP tells them.
struct PagingState {
  std::uint64_t cr3 = 0;
  bool non_root = false;
  friend bool operator==(const PagingState&, const PagingState&) = default;
};

// The conditions of packet generation (manual: TraceEn, TriggerEn, ContextEn, FilterEn, PacketEn).
struct Enables {
  bool trace = false;
  bool stopped = false;  // TraceStop
  bool context = false;
  bool filter = false;
  [[nodiscard]] bool trigger() const noexcept { return trace && !stopped; }
  [[nodiscard]] bool packet() const noexcept { return trigger() && context && filter; }
};

class Generator {
 public:
  Generator(const GeneratorConfig& config, Output output);

  // Time.
  void advance(Instant to);
  bool advance_loosely(Instant to);  // what came since the last time has no times of its own. True: TSC came
  void time_anew();                  // TSC, TMA, CBR: the clock's relation to what came before is lost
  void set_ratio(std::uint8_t ratio);

  // Enabling.
  void start();  // TraceEn set
  // With ContextEn known; the last PSB began this many bytes ago (none: there is none).
  void begin(bool context, std::optional<std::uint64_t> bytes_since_psb);
  void packets_on(std::uint64_t ip);                      // PacketEn set: TIP.PGE
  void packets_off(std::optional<std::uint64_t> target);  // PacketEn cleared: TIP.PGD
  void overflow();                                        // OVF alone
  void stop();                                            // TraceStop

  // Flow.
  void tnt_bit(bool taken);
  void near_tip(std::uint64_t target);    // of an indirect jump or call: may be deferred
  void return_tip(std::uint64_t target);  // of a RET: never deferred
  void far_tip(std::uint64_t target);     // with what a far transfer changes
  void fup(std::uint64_t ip);
  void standalone(const packet::Packet& packet);  // any other packet, after the pending branches
  void pebs_packet(const packet::Packet& packet, bool items_4);
  void mode_tsx(bool in_tx, bool aborted);
  void paging();  // PIP, if the configuration lets it out
  void mode_exec();
  void vmcs_now(std::uint64_t base);  // VMCS, likewise
  void emit_transfer_state();         // what a far transfer loads: between its FUP and its TIP
  void transfer_unseen();             // a far transfer without packets: only its state
  void flush_branches();

  // The next instruction to retire is at `ip`: a PSB is allowed before it.
  void next_instruction(std::uint64_t ip);
  void next_instruction_unknown() noexcept { ip_known_ = false; }
  // A sequence of packets that belong together has begun: no PSB until it ends.
  void open_sequence() noexcept { sequence_open_ = true; }
  void close_sequence() noexcept { sequence_open_ = false; }
  void hold_psb(bool held) noexcept { psb_held_ = held; }
  void hold_cyc() noexcept { cyc_held_ = true; }
  [[nodiscard]] std::uint64_t bytes_since_psb() const noexcept { return writer.bytes_written() - psb_start_; }
  [[nodiscard]] bool psb_due() const noexcept { return bytes_since_psb() >= config.psb_bytes; }

  // Fast path.
  [[nodiscard]] bool begin_fast_path(FastEncoder& fast);
  void end_fast_path(FastEncoder& fast);
  // After packets were lost: writes a PSB+ if the state differs from that in the last packets written.
  void repeat_state_if_changed();
  void forget_told_mode() noexcept { told_mode_.reset(); }

  GeneratorConfig config;
  Enables enables;
  ExecState mode;
  PagingState paging_state;
  std::optional<std::uint64_t> vmcs;
  std::optional<std::uint64_t> transfer_cr3;  // loaded by the next far transfer
  std::optional<std::uint64_t> transfer_vmcs;
  bool in_transaction = false;
  ReturnStack calls;
  PacketWriter writer;

 private:
  void emit(const packet::Packet& packet);
  void emit_ip(packet::PacketKind kind, std::uint64_t ip);
  void emit_cyc() { emit_cyc(timing_.now().cycles); }
  void emit_cyc(std::uint64_t cycles);  // of what happened when the count was `cycles`
  void emit_tnt(unsigned count, packet::PacketKind kind);
  void emit_tsc_tma();
  void emit_mode_if_due();
  void reset_enables() noexcept;
  [[nodiscard]] packet::Packet mode_packet() const noexcept;
  [[nodiscard]] packet::Packet tsx_packet(bool aborted) const noexcept;
  [[nodiscard]] packet::Packet pip_packet() const noexcept;
  [[nodiscard]] bool mode_due() const noexcept;
  void psb_plus();
  void psb_if_due();
  [[nodiscard]] bool fast_path_possible() const noexcept;

  static constexpr std::size_t kFastBytes = 2048;

  Timing timing_;
  TntBuffer tnt_;
  std::uint64_t first_bit_cycles_ = 0;   // when the oldest bit was put there
  std::vector<std::uint64_t> deferred_;  // targets of near TIPs that wait for the TNT packet
  std::uint64_t psb_start_ = 0;          // bytes written when the last PSB began
  std::uint64_t ip_ = 0;                 // of the next instruction, as far as known
  std::uint8_t ratio_;
  bool ip_known_ = false;
  bool sequence_open_ = false;
  bool psb_held_ = false;
  bool cyc_held_ = false;  // until the next advance()
  bool started_ = false;   // a PSB was made
  // State that is known to a decoder that began at the last PSB.
  std::optional<ExecState> told_mode_;
  std::optional<bool> told_transaction_;
  std::optional<PagingState> told_paging_;
  std::array<std::uint8_t, kFastBytes> fast_bytes_;
};

}  // namespace ptkit::trace_unit::generator
