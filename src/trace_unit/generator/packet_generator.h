// Packet generation in software: the input is what a logical processor retires, the output is the bytes that
// a trace unit writes. Recorders and the MSR model use it. docs/packet-generation.md lists the packets and
// their conditions.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/status.h"
#include "packet/event_types.h"
#include "trace_unit/generator/config.h"
#include "trace_unit/generator/fast_encoder.h"
#include "trace_unit/generator/writer.h"

namespace ptkit::trace_unit::generator {

// One block of a PEBS record, and one of its items.
struct PebsItem {
  std::uint8_t id = 0;
  std::uint64_t value = 0;
};
struct PebsBlock {
  std::uint8_t type = 0;
  bool items_4 = false;  // items of 4 bytes instead of 8
  std::span<const PebsItem> items;
};

// Why a power state was left (PWRX).
enum WakeReason : std::uint8_t { WAKE_INTERRUPT = 1, WAKE_STORE = 2, WAKE_HARDWARE = 4 };

// Packet generation. `set_time` before a call says when it happens. Call order is retirement order. With
// TraceEn off, or outside of the filter, calls keep state but make no packets save those the manual says
// (time, PIP with OS traced, power events, ...). Bytes go to `sink` in chunks of
// GeneratorConfig::chunk_bytes; flush() hands over the rest, and has to be called at the end.
class PacketGenerator {
 public:
  using Output = generator::Output;
  PacketGenerator(const GeneratorConfig& config, Output sink);
  ~PacketGenerator();
  PacketGenerator(PacketGenerator&&) noexcept;
  PacketGenerator& operator=(PacketGenerator&&) noexcept;

  // --- time and state
  void set_time(std::uint64_t tsc,
                std::uint64_t core_cycles);  // never goes back; makes MTC/CYC/TSC packets as configured
  // Like set_time(), if the calls since the last time happened at unknown times in between. An MTC packet
  // that fell due meanwhile has no position among the packets of these calls. With TSC on, TSC and TMA
  // packets come now instead. Returns true if a TSC packet gives this time.
  bool set_time_loosely(std::uint64_t tsc, std::uint64_t core_cycles);
  void set_core_bus_ratio(std::uint8_t ratio);
  void wake();  // the clocks ran again after a stop that set_time does not show
  void set_mode(bool cs_l, bool cs_d, bool interrupt_flag);  // MODE.Exec, given with the next TIP or TIP.PGE
  void set_interrupt_flag(bool flag,
                          std::uint64_t next_ip);  // CLI, STI, POPF: MODE.Exec + FUP with event trace
  void set_cr3(std::uint64_t cr3);                 // MOV CR3: PIP where the configuration lets it out
  void set_vmcs(std::uint64_t base);               // VMPTRLD: VMCS packet, likewise
  void set_non_root(bool non_root);                // given with the next PIP
  void transfer_loads_cr3(std::uint64_t cr3);  // the next far transfer does: PIP between its FUP and its TIP
  void transfer_loads_vmcs(std::uint64_t base);  // likewise VMCS

  // --- enabling
  void start();  // TraceEn set outside of the filter: PSB+ the first time, later TSC, TMA, CBR
  void enable(std::uint64_t ip);   // TraceEn set or filter entered: start() if TraceEn is off, then TIP.PGE
  void disable();                  // TraceEn cleared: TIP.PGD without IP
  void disable(std::uint64_t ip);  // left the filter to `ip`: TIP.PGD with IP

  // State by registers, for TraceUnit. TraceEn is set; the last PSB began so many bytes ago: TSC, TMA and
  // CBR (nothing: PSB+). ContextEn and FilterEn are made known where no packet tells of them.
  void begin(bool context, std::optional<std::uint64_t> bytes_since_psb);
  void assume(bool context, bool filter);
  [[nodiscard]] std::uint64_t bytes_since_psb() const noexcept;

  // --- branches
  // `next_ip` is where control goes on; without it a PSB that is due waits for the next known IP.
  void conditional(bool taken);  // Jcc, JCXZ, LOOPcc
  void conditional(bool taken, std::uint64_t next_ip);
  void call(std::uint64_t next_ip, std::uint64_t target);           // direct near CALL
  void call_indirect(std::uint64_t next_ip, std::uint64_t target);  // indirect near CALL
  void jump_indirect(std::uint64_t target);
  void ret(std::uint64_t target);               // near RET: compressed where allowed
  void far_transfer(std::uint64_t target);      // target visible to the filter: TIP
  void far_transfer_out();                      // SYSCALL etc. into a filtered CPL: TIP.PGD without IP
  void far_transfer_out(std::uint64_t target);  // out of an IP filter: TIP.PGD with IP
  void async(std::uint64_t from_ip,
             std::uint64_t target);       // interrupt, exception, signal seen from user space: FUP + TIP
  void async_out(std::uint64_t from_ip);  // the same into a filtered CPL: FUP + TIP.PGD
  void async_out(std::uint64_t from_ip, std::uint64_t target);  // out of an IP filter
  // Begin, commit: MODE.TSX + FUP. Abort: MODE.TSX alone; the FUP and TIP come by async().
  void tsx(bool in_tx, bool aborted, std::uint64_t ip);
  void at(std::uint64_t ip);  // the next instruction is at `ip`; a PSB that is due comes first
  // While held, a PSB that is due waits: its TSC would be of another time.
  void hold_psb(bool held);
  // Later packets have no known times: no CYC packet until set_time() or set_time_loosely().
  void hold_cyc();
  [[nodiscard]] bool psb_due() const noexcept;

  // Moves the state for branches to `fast` (fast_encoder.h). Returns false if packets are off or the fast
  // path does not support the configuration. No other call is allowed before end_fast_path(). PSBs must be
  // held. Core cycles are TSC ticks on the fast path.
  [[nodiscard]] bool begin_fast_path(FastEncoder& fast);
  void end_fast_path(FastEncoder& fast);

  // --- other packets
  void ptwrite(std::uint64_t value, bool wide, std::uint64_t ip);
  void overflow(
      std::uint64_t resume_ip);  // packets were lost, and at `resume_ip` packets are enabled: OVF + FUP
  void overflow();               // the same, but packets are disabled when it ends: OVF
  void trace_stop();             // TIP.PGD without IP if packets are enabled, TraceStop
  void mwait(std::uint8_t hints, std::uint8_t extensions);
  void pwre(std::uint8_t state, std::uint8_t sub_state, bool hardware);
  void exstop(std::uint64_t ip);  // with FUP if packets are enabled
  void exstop();
  void pwrx(std::uint8_t last, std::uint8_t deepest, std::uint8_t reasons);
  void event_data(packet::EvdType type, std::uint64_t value);  // EVD: before the event it belongs to
  void event(packet::CfeType type, std::uint8_t vector);       // CFE: the transfer's own FUP follows, if any
  void event_at(packet::CfeType type, std::uint8_t vector, std::uint64_t ip);  // CFE with IP bit + FUP
  void pebs(std::span<const PebsBlock> record, std::uint64_t ip);              // BBP, BIP..., BEP + FUP
  void trigger(std::uint8_t trbv, std::uint16_t icnt, bool icnt_known, bool multiple,
               std::uint64_t ip);  // TRIG + FUP

  void flush();  // writes out a partly filled TNT packet and hands over all bytes

  [[nodiscard]] std::uint64_t bytes_written()
      const noexcept;                                   // made so far, those not yet handed over included
  [[nodiscard]] bool packets_enabled() const noexcept;  // PacketEn
  [[nodiscard]] base::Status status() const noexcept;   // not OK if a packet could not be encoded (a defect)

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ptkit::trace_unit::generator
