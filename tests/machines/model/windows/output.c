// SPDX-License-Identifier: MIT
#include "common/pt_bts.h"
#include "common/pt_topa.h"
#include "model.h"
#include "ptkit/rtit_regs.h"
#include "shims.h"

static uint64_t strays;

uint64_t model_strays(void) { return strays; }

static void raise_interrupt(struct model_unit* unit, uint32_t bit) {
  unit->global_status |= PT_BIT(bit);
  unit->is_pending = true;
}

static uint64_t field(uint64_t value, uint32_t shift, uint32_t width) {
  return value >> shift & (PT_BIT(width) - 1);
}

static uint64_t index_of(const struct model_registers* registers) {
  return field(registers->mask_ptrs, PT_OUTPUT_TABLE_OFFSET_SHIFT, PT_OUTPUT_TABLE_OFFSET_WIDTH);
}

static void set_position(struct model_registers* registers, uint64_t index, uint64_t offset) {
  registers->mask_ptrs =
      offset << PT_OUTPUT_OFFSET_SHIFT | index << PT_OUTPUT_TABLE_OFFSET_SHIFT | PT_OUTPUT_MASK_LOWEST;
}

/* An operational error: the unit stops. */
static bool fail(struct model_unit* unit) {
  unit->registers.status |= PT_BIT(PT_STATUS_ERROR);
  unit->packet_en = false;
  return false;
}

/* The entry of the region to write to, after END entries; false: an error. */
static bool find_entry(struct model_unit* unit, uint64_t* entry) {
  struct model_registers* registers = &unit->registers;
  for (int links = 0; links < 2; links++) {
    const uint64_t* found =
        shim_memory_at(registers->output_base + index_of(registers) * PT_TOPA_ENTRY_BYTES, 8);
    if (found == NULL) return fail(unit);
    *entry = *found;
    uint64_t base = *entry >> PT_TOPA_BASE_SHIFT << PT_TOPA_BASE_SHIFT;
    if (!(*entry & PT_BIT(PT_TOPA_END))) {
      uint64_t bytes = PT_TOPA_LEAST_BYTES << field(*entry, PT_TOPA_SIZE_SHIFT, PT_TOPA_SIZE_WIDTH);
      return base % bytes == 0 ? true : fail(unit);
    }
    if (*entry & (PT_BIT(PT_TOPA_INT) | PT_BIT(PT_TOPA_STOP))) return fail(unit);
    registers->output_base = base;
    set_position(registers, 0, 0);
  }
  return fail(unit);
}

static void put_byte(uint64_t physical, uint8_t byte) {
  uint8_t* target = shim_memory_at(physical, 1);
  if (target == NULL)
    strays++;
  else
    *target = byte;
}

/* After the last byte of a region. */
static void leave_region(struct model_unit* unit, uint64_t entry) {
  if (entry & PT_BIT(PT_TOPA_INT)) raise_interrupt(unit, PT_PERF_GLOBAL_TRACE_TOPA_PMI);
  if (entry & PT_BIT(PT_TOPA_STOP)) {
    unit->registers.status |= PT_BIT(PT_STATUS_STOPPED);
    unit->packet_en = false;
    return;
  }
  set_position(&unit->registers, index_of(&unit->registers) + 1, 0);
}

static void write_to_table(struct model_unit* unit, uint8_t byte) {
  struct model_registers* registers = &unit->registers;
  uint64_t entry;
  if (!find_entry(unit, &entry)) return;
  uint64_t offset = registers->mask_ptrs >> PT_OUTPUT_OFFSET_SHIFT;
  uint64_t bytes = PT_TOPA_LEAST_BYTES << field(entry, PT_TOPA_SIZE_SHIFT, PT_TOPA_SIZE_WIDTH);
  put_byte((entry >> PT_TOPA_BASE_SHIFT << PT_TOPA_BASE_SHIFT) + offset, byte);
  registers->mask_ptrs += PT_BIT(PT_OUTPUT_OFFSET_SHIFT);
  if (offset + 1 >= bytes) leave_region(unit, entry);
}

static void write_to_range(struct model_unit* unit, uint8_t byte) {
  struct model_registers* registers = &unit->registers;
  uint64_t offset = registers->mask_ptrs >> PT_OUTPUT_OFFSET_SHIFT;
  uint64_t mask = (uint32_t)registers->mask_ptrs;
  put_byte(registers->output_base + offset, byte);
  registers->mask_ptrs = ((offset + 1) & mask) << PT_OUTPUT_OFFSET_SHIFT | mask;
}

void model_output(struct model_unit* unit, const void* bytes, uint32_t count) {
  const uint64_t ended = PT_BIT(PT_STATUS_STOPPED) | PT_BIT(PT_STATUS_ERROR);
  struct model_registers* registers = &unit->registers;
  for (uint32_t i = 0; i < count; i++) {
    if (registers->status & ended) {
      unit->dropped_bytes += count - i;
      return;
    }
    if (registers->ctl & PT_BIT(PT_CTL_TOPA))
      write_to_table(unit, ((const uint8_t*)bytes)[i]);
    else
      write_to_range(unit, ((const uint8_t*)bytes)[i]);
    uint64_t written =
        field(registers->status, PT_STATUS_PACKET_BYTE_COUNT_SHIFT, PT_STATUS_PACKET_BYTE_COUNT_WIDTH);
    if (written + 1 < PT_BIT(PT_STATUS_PACKET_BYTE_COUNT_WIDTH))
      registers->status += PT_BIT(PT_STATUS_PACKET_BYTE_COUNT_SHIFT);
  }
}

static bool stores(const struct model_registers* registers, uint32_t cpl) {
  const uint64_t on = PT_BIT(PT_DEBUGCTL_TR) | PT_BIT(PT_DEBUGCTL_BTS);
  if ((registers->debugctl & on) != on) return false;
  return !(registers->debugctl & PT_BIT(cpl == 0 ? PT_DEBUGCTL_BTS_OFF_OS : PT_DEBUGCTL_BTS_OFF_USR));
}

void model_store_branch(struct model_unit* unit, uint32_t cpl, uint64_t from, uint64_t to) {
  struct pt_ds_area* area = (struct pt_ds_area*)(uintptr_t)unit->registers.ds_area;
  bool interrupts = unit->registers.debugctl & PT_BIT(PT_DEBUGCTL_BTINT);
  if (!stores(&unit->registers, cpl)) return;
  if (area->bts_index + sizeof(struct pt_bts_record) > area->bts_maximum) {
    if (interrupts) {
      unit->dropped_bytes += sizeof(struct pt_bts_record);
      return;
    }
    area->bts_index = area->bts_base;
  }
  *(struct pt_bts_record*)(uintptr_t)area->bts_index =
      (struct pt_bts_record){from, to, PT_BIT(PT_BTS_FLAG_PREDICTED)};
  area->bts_index += sizeof(struct pt_bts_record);
  unit->stored++;
  if (interrupts && area->bts_index >= area->bts_threshold) raise_interrupt(unit, PT_PERF_GLOBAL_OVF_BUFFER);
}
