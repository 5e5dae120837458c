// SPDX-License-Identifier: MIT
/*
 * Packets as the manual has them: Intel SDM vol. 3, chapter "Intel Processor Trace", sections "Trace Packets
 * and Data Types" and "Packet Generation Scenarios".
 */
#include "common/pt_ops.h"
#include "model.h"
#include "ptkit/rtit_regs.h"

#define RETURN_DEPTH 64 /* of the stack of compressed returns */
#define NO_CR3 UINT64_MAX

enum ip_opcode { OPCODE_TIP = 0x0d, OPCODE_TIP_PGE = 0x11, OPCODE_TIP_PGD = 0x01, OPCODE_FUP = 0x1d };

static bool has(const struct model_unit* unit, uint32_t bit) { return unit->registers.ctl >> bit & 1; }

static void flush_tnt(struct model_unit* unit) {
  if (unit->tnt_count == 0) return;
  uint8_t packet = (uint8_t)((1U << unit->tnt_count | unit->tnt_bits) << 1);
  unit->tnt_count = 0;
  unit->tnt_bits = 0;
  model_output(unit, &packet, 1);
}

static void add_tnt(struct model_unit* unit, bool taken) {
  if (has(unit, PT_CTL_DIS_TNT)) return;
  unit->tnt_bits = unit->tnt_bits << 1 | taken;
  if (++unit->tnt_count == 6) flush_tnt(unit);
}

/* IPBytes and the bytes that follow, of the shortest form that the last IP permits. */
static void put_ip(struct model_unit* unit, enum ip_opcode opcode, uint64_t ip) {
  static const uint8_t counts[] = {0, 2, 4, 6, 6, 0, 8};
  uint8_t packet[9];
  uint64_t changed = ip ^ unit->last_ip;
  uint32_t form = 6;
  if (changed >> 16 == 0)
    form = 1;
  else if (changed >> 32 == 0)
    form = 2;
  else if ((uint64_t)((int64_t)(ip << 16) >> 16) == ip)
    form = 3;
  packet[0] = (uint8_t)(form << 5 | opcode);
  for (uint32_t i = 0; i < counts[form]; i++) packet[1 + i] = (uint8_t)(ip >> 8 * i);
  unit->last_ip = ip;
  flush_tnt(unit);
  model_output(unit, packet, 1U + counts[form]);
}

static void put_pgd_without_ip(struct model_unit* unit) {
  static const uint8_t packet[] = {OPCODE_TIP_PGD};
  model_output(unit, packet, sizeof(packet));
}

static void put_tsc(struct model_unit* unit) {
  uint8_t packet[8] = {0x19};
  uint64_t tsc = model_now();
  for (int i = 0; i < 7; i++) packet[1 + i] = (uint8_t)(tsc >> 8 * i);
  if (has(unit, PT_CTL_TSC_EN)) model_output(unit, packet, sizeof(packet));
}

/* CS.L and CS.D: neither in real-address mode, in virtual-8086 mode, and in other 16-bit code. */
static void put_mode(struct model_unit* unit) {
  bool is_64_bit = unit->thread == NULL || unit->thread->program->bits == 64;
  uint8_t packet[] = {0x99, is_64_bit};
  model_output(unit, packet, sizeof(packet));
}

/* Bits 51:5 of CR3, above the bit for VMX non-root operation. Only where code at CPL 0 is traced. */
static void put_pip(struct model_unit* unit) {
  uint8_t packet[8] = {0x02, 0x43};
  if (!has(unit, PT_CTL_OS)) return;
  unit->last_cr3 = unit->thread->cr3;
  for (int i = 0; i < 6; i++) packet[2 + i] = (uint8_t)(unit->last_cr3 >> 5 << 1 >> 8 * i);
  model_output(unit, packet, sizeof(packet));
}

static void put_psb(struct model_unit* unit) {
  static const uint8_t psb[] = {0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82,
                                0x02, 0x82, 0x02, 0x82, 0x02, 0x82, 0x02, 0x82};
  static const uint8_t end[] = {0x02, 0x23};
  flush_tnt(unit);
  unit->registers.status &=
      ~((PT_BIT(PT_STATUS_PACKET_BYTE_COUNT_WIDTH) - 1) << PT_STATUS_PACKET_BYTE_COUNT_SHIFT);
  unit->last_ip = 0;
  unit->return_depth = 0;
  model_output(unit, psb, sizeof(psb));
  put_tsc(unit);
  if (unit->packet_en) put_pip(unit);
  put_mode(unit);
  if (unit->packet_en) put_ip(unit, OPCODE_FUP, unit->ip);
  model_output(unit, end, sizeof(end));
}

static uint64_t bytes_since_psb(const struct model_unit* unit) {
  return unit->registers.status >> PT_STATUS_PACKET_BYTE_COUNT_SHIFT &
         (PT_BIT(PT_STATUS_PACKET_BYTE_COUNT_WIDTH) - 1);
}

/* The last IP stays: only PSB resets a decoder's. */
void model_trace_enabled(struct model_unit* unit) {
  unit->last_cr3 = NO_CR3;
  unit->tnt_count = 0;
  unit->tnt_bits = 0;
  unit->lands = true;
  if (bytes_since_psb(unit) == 0) put_psb(unit);
}

/* An interrupt of the code that is traced. */
static void leave(struct model_unit* unit) {
  unit->lands = true;
  if (!unit->packet_en) return;
  if (has(unit, PT_CTL_BRANCH_EN)) {
    put_ip(unit, OPCODE_FUP, unit->ip);
    put_pgd_without_ip(unit);
  }
  unit->packet_en = false;
}

void model_trace_disabled(struct model_unit* unit) { leave(unit); }

static uint32_t range_config(const struct model_unit* unit, uint32_t range) {
  return unit->registers.ctl >> (PT_CTL_ADDR0_CFG_SHIFT + 4 * range) & 15;
}

/* Whether an address is in a range of this kind. */
static bool is_in_range(const struct model_unit* unit, uint32_t kind, uint64_t ip) {
  for (uint32_t range = 0; range < PT_MSR_RTIT_ADDR_COUNT; range++)
    if (range_config(unit, range) == kind && ip >= unit->registers.addr[2 * range] &&
        ip <= unit->registers.addr[2 * range + 1])
      return true;
  return false;
}

static bool has_filter(const struct model_unit* unit) {
  for (uint32_t range = 0; range < PT_MSR_RTIT_ADDR_COUNT; range++)
    if (range_config(unit, range) == PT_ADDR_CFG_FILTER) return true;
  return false;
}

/* ContextEn and TriggerEn. */
static bool is_wanted(const struct model_unit* unit) {
  const struct model_registers* registers = &unit->registers;
  const struct model_thread* thread = unit->thread;
  if (thread == NULL || !has(unit, PT_CTL_TRACE_EN)) return false;
  if (registers->status & (PT_BIT(PT_STATUS_STOPPED) | PT_BIT(PT_STATUS_ERROR))) return false;
  if (!has(unit, thread->cpl == 0 ? PT_CTL_OS : PT_CTL_USER)) return false;
  return !has(unit, PT_CTL_CR3_FILTER) || registers->cr3_match >> 12 == thread->cr3 >> 12;
}

/*
 * A taken branch or an event leads to the address. FilterEn and TraceStop change here, and not where code
 * runs straight into a range or out of it (sections "Filtering by IP" and "FilterEn").
 */
static void land(struct model_unit* unit, uint64_t ip) {
  static const uint8_t trace_stop[] = {0x02, 0x83};
  bool stops = is_wanted(unit) && is_in_range(unit, PT_ADDR_CFG_TRACE_STOP, ip);
  unit->lands = false;
  unit->filter_en = !stops && (!has_filter(unit) || is_in_range(unit, PT_ADDR_CFG_FILTER, ip));
  if (unit->packet_en && !unit->filter_en) {
    if (has(unit, PT_CTL_BRANCH_EN)) put_ip(unit, OPCODE_TIP_PGD, ip);
    unit->packet_en = false;
  }
  if (!stops) return;
  flush_tnt(unit);
  model_output(unit, trace_stop, sizeof(trace_stop));
  unit->registers.status |= PT_BIT(PT_STATUS_STOPPED);
}

static void begin_packets(struct model_unit* unit) {
  unit->return_depth = 0;
  unit->packet_en = true;
  if (!has(unit, PT_CTL_BRANCH_EN)) return;
  put_tsc(unit);
  if (unit->last_cr3 != unit->thread->cr3) put_pip(unit);
  put_mode(unit);
  put_ip(unit, OPCODE_TIP_PGE, unit->ip);
  unit->packet_en = is_wanted(unit);
}

void model_begin_block(struct model_unit* unit) {
  uint32_t exponent = 11 + (unit->registers.ctl >> PT_CTL_PSB_FREQ_SHIFT & 15);
  if (unit->lands) land(unit, unit->ip);
  if (!unit->packet_en && unit->filter_en && is_wanted(unit)) begin_packets(unit);
  if (unit->packet_en && bytes_since_psb(unit) >= PT_BIT(exponent < 17 ? exponent : 16)) put_psb(unit);
}

/* Whether a branch needs packets here; one that leaves the traced code ends with TIP.PGD. */
static bool stays(struct model_unit* unit, bool taken, uint64_t next) {
  bool traced = unit->packet_en;
  if (taken) land(unit, next);
  return traced && unit->packet_en && has(unit, PT_CTL_BRANCH_EN);
}

static void count_call(struct model_unit* unit) {
  if (unit->return_depth < RETURN_DEPTH) unit->return_depth++;
}

void model_conditional(struct model_unit* unit, bool taken, uint64_t next) {
  if (stays(unit, taken, next)) add_tnt(unit, taken);
}

void model_direct(struct model_unit* unit, bool is_call, uint64_t next) {
  if (stays(unit, true, next) && is_call) count_call(unit);
}

void model_indirect(struct model_unit* unit, bool is_call, uint64_t next) {
  if (!stays(unit, true, next)) return;
  put_ip(unit, OPCODE_TIP, next);
  if (is_call) count_call(unit);
}

void model_return(struct model_unit* unit, bool is_matched, uint64_t next) {
  if (!stays(unit, true, next)) return;
  bool compressed =
      is_matched && unit->return_depth != 0 && !has(unit, PT_CTL_DIS_RETC) && !has(unit, PT_CTL_DIS_TNT);
  if (unit->return_depth != 0) unit->return_depth--;
  if (compressed)
    add_tnt(unit, true);
  else
    put_ip(unit, OPCODE_TIP, next);
}

void model_switch(struct model_unit* unit, struct model_thread* thread) {
  if (unit->thread == thread) return;
  leave(unit);
  unit->thread = thread;
}
