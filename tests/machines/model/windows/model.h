/* SPDX-License-Identifier: MIT */
/*
 * A model of processors for test builds of the Windows driver: registers of the trace unit and of Branch
 * Trace Store with the faults of the manual, processors that run the code of program.h, and the packets and
 * records of it, at the addresses that the registers have. It writes no MTC, CYC, PTW, power and event
 * packets.
 */
#ifndef PTKIT_TESTS_MODEL_WINDOWS_MODEL_H
#define PTKIT_TESTS_MODEL_WINDOWS_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "control.h"
#include "program.h"

struct model_unit {
  struct model_registers registers;
  uint64_t global_status;
  bool is_pending; /* an interrupt of performance monitoring */
  bool is_armed;   /* the local APIC does not mask it */
  bool packet_en;
  bool filter_en; /* changes where a taken branch or an event lands */
  bool lands;     /* the next instruction is where an event lands: a return from an interrupt */
  uint64_t ip;    /* of the next instruction */
  uint64_t last_ip;
  uint64_t last_cr3; /* that a PIP had */
  uint32_t tnt_bits;
  uint32_t tnt_count;
  uint32_t return_depth; /* of calls that returns can be compressed with */
  uint64_t dropped_bytes;
  uint64_t stored;             /* branches */
  struct model_thread* thread; /* that runs */
  uint32_t accesses;           /* of registers */
  void* lock;                  /* taken while interrupts are off */
};

/* machine.c. The caller of model_take() has the processor, with interrupts off. */
void model_begin(void);
void model_reset_parameters(void);
struct model_unit* model_unit_of(uint32_t cpu);
struct model_unit* model_take(uint32_t cpu, uint32_t* before);
void model_give_back(struct model_unit* unit, uint32_t before);
void model_deliver(struct model_unit* unit);
uint64_t model_now(void);
void model_pass(uint64_t ticks);
uint32_t model_cpuid_word(uint32_t cpu, enum model_parameter word);
bool model_set(const struct model_set* set);
struct model_counts model_counts(void);

/* output.c: bytes to where the registers point. */
void model_output(struct model_unit* unit, const void* bytes, uint32_t count);
/* Bytes for addresses where there is no memory. */
uint64_t model_strays(void);
/* A branch to Branch Trace Store, if that is on. */
void model_store_branch(struct model_unit* unit, uint32_t cpl, uint64_t from, uint64_t to);

/* packets.c. PacketEn follows from the registers and from the thread. */
void model_trace_enabled(struct model_unit* unit);
void model_trace_disabled(struct model_unit* unit);
/* Before a block: PSB+ and TIP.PGE where they are due. */
void model_begin_block(struct model_unit* unit);
void model_conditional(struct model_unit* unit, bool taken, uint64_t next);
void model_direct(struct model_unit* unit, bool is_call, uint64_t next);
void model_indirect(struct model_unit* unit, bool is_call, uint64_t next);
void model_return(struct model_unit* unit, bool is_matched, uint64_t next);
/* Another thread, or none, runs from now on. */
void model_switch(struct model_unit* unit, struct model_thread* thread);

#endif /* PTKIT_TESTS_MODEL_WINDOWS_MODEL_H */
