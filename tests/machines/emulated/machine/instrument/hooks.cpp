// Hooks that Bochs calls, for all processors.
#include <cstdlib>
#include <memory>
#include <vector>

#include "host_port.h"
#include "processor.h"

using ptkit::emulated::Counters;
using ptkit::emulated::HostPort;
using ptkit::emulated::Processor;
using ptkit::emulated::TruthLog;

bool ptkit_watching = false;
bool ptkit_stepping = false;

namespace {

struct Machine {
  TruthLog log{std::getenv("PTKIT_TRUTH")};
  HostPort port{std::getenv("PTKIT_OUTPUT")};
  std::vector<std::unique_ptr<Processor>> processors;  // by number
  bool counting = false;

  void look() {
    ptkit_watching = false;
    counting = false;
    for (const auto& processor : processors) {
      if (processor == nullptr) continue;
      ptkit_watching |= processor->watching();
      counting |= processor->counters().on();
    }
    ptkit_stepping = ptkit_watching || counting;
  }
};

Machine& machine() {
  static Machine the_machine;
  return the_machine;
}

Processor& processor(unsigned cpu) { return *machine().processors[cpu]; }

void begin_part(TruthLog::When when) {
  for (const auto& processor : machine().processors) processor->close_log();
  machine().log.begin_part(when);
  machine().look();
}

void obey(HostPort::Order order) {
  switch (order) {
    case HostPort::Order::NONE:
      return;
    case HostPort::Order::POWER_OFF:
      begin_part(TruthLog::When::NEVER);
      return bx_stop_simulation();
    case HostPort::Order::LOG_NEVER:
      return begin_part(TruthLog::When::NEVER);
    case HostPort::Order::LOG_WHILE_TRACING:
      return begin_part(TruthLog::When::WHILE_TRACING);
    case HostPort::Order::LOG_ALWAYS:
      return begin_part(TruthLog::When::ALWAYS);
    case HostPort::Order::FAULT:
      for (const auto& processor : machine().processors) processor->plant(machine().port.fault());
      return;
  }
}

}  // namespace

void ptkit_initialize(unsigned cpu) {
  auto& all = machine().processors;
  if (all.size() <= cpu) all.resize(cpu + 1);
  all[cpu] = std::make_unique<Processor>(*BX_CPU(cpu), machine().log);
}

void ptkit_reset(unsigned cpu, unsigned type) {
  if (cpu >= machine().processors.size() || machine().processors[cpu] == nullptr) return;
  if (type == BX_RESET_HARDWARE) processor(cpu).reset(false);
  machine().look();
}

void ptkit_conditional(unsigned cpu, bool taken) { processor(cpu).conditional(taken); }
void ptkit_near_branch(unsigned cpu, unsigned what, Bit64u to) { processor(cpu).near_branch(what, to); }
void ptkit_far_branch(unsigned cpu, unsigned what, Bit64u from, Bit64u to) {
  processor(cpu).far_branch(what, from, to);
}
void ptkit_interrupt(unsigned cpu, Bit64u from) { processor(cpu).interrupt(from); }
void ptkit_exception(unsigned cpu) { processor(cpu).interrupt(BX_CPU(cpu)->prev_rip); }
void ptkit_control_register(unsigned cpu, unsigned what) { processor(cpu).control_register(what); }
void ptkit_before(unsigned cpu, bxInstruction_c* instruction) {
  Processor& here = processor(cpu);
  if (machine().counting) here.counters().step();
  if (ptkit_watching) here.before(*instruction);
}
void ptkit_after(unsigned cpu, bxInstruction_c* instruction) { processor(cpu).after(*instruction); }

int ptkit_read_counter(unsigned cpu, Bit32u selector, Bit64u* value) {
  const auto count = processor(cpu).counters().read_counter(selector);
  *value = count.value_or(0);
  return count.has_value();
}

void ptkit_unmasked(unsigned cpu) { processor(cpu).counters().unmasked(); }

void ptkit_port_write(unsigned port, unsigned bytes, unsigned value) {
  obey(machine().port.write(port, bytes, value));
}

int ptkit_read_msr(unsigned cpu, unsigned index, Bit64u* value) {
  return processor(cpu).read_msr(index, *value);
}

int ptkit_write_msr(unsigned cpu, unsigned index, Bit64u value) {
  const int result = processor(cpu).write_msr(index, value);
  machine().look();
  return result;
}

void ptkit_change_cpuid(unsigned leaf, unsigned subleaf, Bit32u* eax, Bit32u* ebx, Bit32u* ecx, Bit32u* edx) {
  static const ptkit::ptmodel::Capabilities unit = Processor::capabilities();
  static const Bit32u ips = static_cast<Bit32u>(SIM->get_param_num(BXPN_IPS)->get());
  const auto set = [=](Bit32u a, Bit32u b, Bit32u c, Bit32u d) { *eax = a, *ebx = b, *ecx = c, *edx = d; };
  if (leaf == 1) {
    *ecx |= 1U << 2 | 1U << 4;  // DTES64, DS-CPL
    *edx |= 1U << 21;           // DS
    *ecx |= 1U << 15;           // PDCM
  } else if (leaf == 7 && subleaf == 0) {
    *ebx |= 1U << PT_CPUID_7_EBX_PT;
  } else if (leaf == 0xa) {
    // Version 2. Of seven events the first three count: cycles, instructions, reference cycles.
    set(2 | Counters::kGeneral << 8 | Counters::kWidth << 16 | 7 << 24, 0x78, 0,
        Counters::kFixed | Counters::kWidth << 5);
  } else if (leaf == 0x14) {
    if (subleaf == 0) set(1, unit.leaf_14_ebx, unit.leaf_14_ecx, 0);
    if (subleaf == 1) set(unit.leaf_14_1_eax, unit.leaf_14_1_ebx, 0, 0);
  } else if (leaf == 0x15) {
    const ptkit::trace_unit::generator::GeneratorConfig clocks = Processor::packet_config();
    const Bit32u numerator = clocks.tsc_ctc_numerator;
    set(clocks.tsc_ctc_denominator, numerator, ips / numerator * clocks.tsc_ctc_denominator, 0);
  } else if (leaf == 0x16) {
    const Bit32u mhz = ips / 1'000'000;
    set(mhz, mhz, mhz / Processor::packet_config().max_nonturbo_ratio, 0);
  }
}
