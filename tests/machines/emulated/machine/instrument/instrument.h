// Hooks that Bochs calls (it includes this file everywhere), answered by hooks.cpp. Most
// are asked for only while a trace unit or the log of the truth is on.
#pragma once

class bxInstruction_c;

extern bool ptkit_watching;
extern bool ptkit_stepping;  // or a performance counter counts

void ptkit_initialize(unsigned cpu);
void ptkit_reset(unsigned cpu, unsigned type);
void ptkit_conditional(unsigned cpu, bool taken);
void ptkit_near_branch(unsigned cpu, unsigned what, Bit64u to);
void ptkit_far_branch(unsigned cpu, unsigned what, Bit64u from, Bit64u to);
void ptkit_interrupt(unsigned cpu, Bit64u from);
void ptkit_exception(unsigned cpu);
void ptkit_control_register(unsigned cpu, unsigned what);
void ptkit_before(unsigned cpu, bxInstruction_c* instruction);
void ptkit_after(unsigned cpu, bxInstruction_c* instruction);
void ptkit_port_write(unsigned port, unsigned bytes, unsigned value);

void ptkit_unmasked(unsigned cpu);  // the local APIC's entry of performance counters

// 1: done, 0: #GP, -1: not ours.
int ptkit_read_msr(unsigned cpu, unsigned index, Bit64u* value);
int ptkit_write_msr(unsigned cpu, unsigned index, Bit64u value);
int ptkit_read_counter(unsigned cpu, Bit32u selector, Bit64u* value);
void ptkit_change_cpuid(unsigned leaf, unsigned subleaf, Bit32u* eax, Bit32u* ebx, Bit32u* ecx, Bit32u* edx);

#define PTKIT_WATCHED(call)   \
  do {                        \
    if (ptkit_watching) call; \
  } while (0)

#define BX_INSTR_INIT_ENV()
#define BX_INSTR_EXIT_ENV()
#define BX_INSTR_INITIALIZE(cpu) ptkit_initialize(cpu)
#define BX_INSTR_EXIT(cpu)
#define BX_INSTR_RESET(cpu, type) ptkit_reset(cpu, type)
#define BX_INSTR_HLT(cpu)
#define BX_INSTR_MWAIT(cpu, address, bytes, flags)
#define BX_INSTR_DEBUG_PROMPT()
#define BX_INSTR_DEBUG_CMD(command)
#define BX_INSTR_CNEAR_BRANCH_TAKEN(cpu, from, to) PTKIT_WATCHED(ptkit_conditional(cpu, true))
#define BX_INSTR_CNEAR_BRANCH_NOT_TAKEN(cpu, from) PTKIT_WATCHED(ptkit_conditional(cpu, false))
#define BX_INSTR_UCNEAR_BRANCH(cpu, what, from, to) PTKIT_WATCHED(ptkit_near_branch(cpu, what, to))
#define BX_INSTR_FAR_BRANCH(cpu, what, from_cs, from, to_cs, to) \
  PTKIT_WATCHED(ptkit_far_branch(cpu, what, from, to))
#define BX_INSTR_OPCODE(cpu, instruction, bytes, length, is32, is64)
#define BX_INSTR_EXCEPTION(cpu, vector, error) PTKIT_WATCHED(ptkit_exception(cpu))
#define BX_INSTR_INTERRUPT(cpu, vector)
#define BX_INSTR_HWINTERRUPT(cpu, vector, cs, from) PTKIT_WATCHED(ptkit_interrupt(cpu, from))
#define BX_INSTR_CLFLUSH(cpu, linear, physical)
#define BX_INSTR_CACHE_CNTRL(cpu, what)
#define BX_INSTR_TLB_CNTRL(cpu, what, value) PTKIT_WATCHED(ptkit_control_register(cpu, what))
#define BX_INSTR_PREFETCH_HINT(cpu, what, segment, offset)
#define BX_INSTR_BEFORE_EXECUTION(cpu, instruction)     \
  do {                                                  \
    if (ptkit_stepping) ptkit_before(cpu, instruction); \
  } while (0)
#define BX_INSTR_AFTER_EXECUTION(cpu, instruction) PTKIT_WATCHED(ptkit_after(cpu, instruction))
#define BX_INSTR_REPEAT_ITERATION(cpu, instruction)
#define BX_INSTR_LIN_ACCESS(cpu, linear, physical, bytes, type, rw)
#define BX_INSTR_PHY_ACCESS(cpu, physical, bytes, type, rw)
#define BX_INSTR_INP(port, bytes)
#define BX_INSTR_INP2(port, bytes, value)
#define BX_INSTR_OUTP(port, bytes, value) ptkit_port_write(port, bytes, value)
#define BX_INSTR_WRMSR(cpu, index, value)
#define BX_INSTR_VMEXIT(cpu, reason, qualification)
