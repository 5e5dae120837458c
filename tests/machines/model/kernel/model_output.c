// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Output of the model: bytes that count up, at the addresses that the registers have. */
#include <linux/io.h>
#include <linux/moduleparam.h>
#include <linux/types.h>

#include "common/pt_bts.h"
#include "common/pt_topa.h"
#include "model.h"
#include "ptkit/rtit_regs.h"

static unsigned int model_lazy;
module_param(model_lazy, uint, 0644);
MODULE_PARM_DESC(
	model_lazy,
	"a full region is left 0: at once; 1: without following END; 2: with the next byte");

/* Never zero: zeros mark bytes that were not written. */
static u8 next_value(struct model_unit *unit)
{
	return 1 + (*unit->written)++ % 251;
}

static u64 entry_of(const struct model_unit *unit)
{
	u64 index = (unit->mask_ptrs >> PT_OUTPUT_TABLE_OFFSET_SHIFT) &
		    (BIT_ULL(PT_OUTPUT_TABLE_OFFSET_WIDTH) - 1);
	const u64 *table = phys_to_virt(unit->base);

	return table[index];
}

static u64 address_of(u64 entry)
{
	return entry >> PT_TOPA_BASE_SHIFT << PT_TOPA_BASE_SHIFT;
}

static void set_position(struct model_unit *unit, u64 index, u64 offset)
{
	unit->mask_ptrs = offset << PT_OUTPUT_OFFSET_SHIFT | index << PT_OUTPUT_TABLE_OFFSET_SHIFT |
			  PT_OUTPUT_MASK_LOWEST;
}

static u64 region_bytes(u64 entry)
{
	return PT_TOPA_LEAST_BYTES << ((entry >> PT_TOPA_SIZE_SHIFT) & 15);
}

static void follow_end(struct model_unit *unit)
{
	u64 entry = entry_of(unit);

	if (!(entry & BIT(PT_TOPA_END)))
		return;
	unit->base = address_of(entry);
	set_position(unit, 0, 0);
}

/* After the last byte of a region. */
static void next_region(struct model_unit *unit, u64 entry)
{
	u64 index = (unit->mask_ptrs >> PT_OUTPUT_TABLE_OFFSET_SHIFT) &
		    (BIT_ULL(PT_OUTPUT_TABLE_OFFSET_WIDTH) - 1);

	if (entry & BIT(PT_TOPA_INT)) {
		unit->global_status |= BIT_ULL(PT_PERF_GLOBAL_TRACE_TOPA_PMI);
		unit->interrupt = true;
	}
	if (entry & BIT(PT_TOPA_STOP)) {
		unit->status |= BIT(PT_STATUS_STOPPED);
		return;
	}
	if (READ_ONCE(model_lazy) < 2)
		set_position(unit, index + 1, 0);
	if (!READ_ONCE(model_lazy))
		follow_end(unit);
}

/* Before a byte, if the unit has not left the last region yet. */
static void leave_region(struct model_unit *unit)
{
	u64 index = (unit->mask_ptrs >> PT_OUTPUT_TABLE_OFFSET_SHIFT) &
		    (BIT_ULL(PT_OUTPUT_TABLE_OFFSET_WIDTH) - 1);
	u64 entry = entry_of(unit);

	if (!(entry & BIT(PT_TOPA_END)) &&
	    unit->mask_ptrs >> PT_OUTPUT_OFFSET_SHIFT == region_bytes(entry))
		set_position(unit, index + 1, 0);
	follow_end(unit);
}

static void write_to_range(struct model_unit *unit)
{
	u64 offset = unit->mask_ptrs >> PT_OUTPUT_OFFSET_SHIFT;
	u64 mask = (u32)unit->mask_ptrs;

	*(u8 *)phys_to_virt(unit->base + offset) = next_value(unit);
	unit->mask_ptrs = ((offset + 1) & mask) << PT_OUTPUT_OFFSET_SHIFT | mask;
}

static void write_to_table(struct model_unit *unit)
{
	u64 offset;
	u64 entry;

	leave_region(unit);
	offset = unit->mask_ptrs >> PT_OUTPUT_OFFSET_SHIFT;
	entry = entry_of(unit);
	*(u8 *)phys_to_virt(address_of(entry) + offset) = next_value(unit);
	unit->mask_ptrs += BIT_ULL(PT_OUTPUT_OFFSET_SHIFT);
	if (offset + 1 == region_bytes(entry))
		next_region(unit, entry);
}

static void write_byte(struct model_unit *unit)
{
	if (unit->ctl & BIT(PT_CTL_TOPA))
		write_to_table(unit);
	else
		write_to_range(unit);
}

unsigned int model_write_packets(struct model_unit *unit, unsigned int bytes)
{
	for (; bytes && !(unit->status & BIT(PT_STATUS_STOPPED)); bytes--)
		write_byte(unit);
	return bytes;
}

unsigned int model_interrupt_entries(const struct model_unit *unit)
{
	const u64 *entry = phys_to_virt(unit->base);
	unsigned int count = 0;

	if (!(unit->ctl & BIT(PT_CTL_TOPA)))
		return 0;
	do {
		for (; !(*entry & BIT(PT_TOPA_END)); entry++)
			count += !!(*entry & BIT(PT_TOPA_INT));
		entry = phys_to_virt(address_of(*entry));
	} while (entry != phys_to_virt(unit->base));
	return count;
}

static bool write_record(struct model_unit *unit, struct pt_ds_area *area)
{
	u8 *record = (u8 *)area->bts_index;
	u64 i;

	if (area->bts_index == area->bts_maximum) {
		if (unit->debugctl & BIT(PT_DEBUGCTL_BTINT))
			return false;
		record = (u8 *)area->bts_base;
	}
	for (i = 0; i < sizeof(struct pt_bts_record); i++)
		record[i] = next_value(unit);
	area->bts_index = (u64)record + sizeof(struct pt_bts_record);
	if (unit->debugctl & BIT(PT_DEBUGCTL_BTINT) && area->bts_index == area->bts_threshold) {
		unit->global_status |= BIT_ULL(PT_PERF_GLOBAL_OVF_BUFFER);
		unit->interrupt = true;
	}
	return true;
}

void model_write_records(struct model_unit *unit, unsigned int bytes)
{
	struct pt_ds_area *area = (struct pt_ds_area *)unit->ds_area;
	unsigned int count = bytes / sizeof(struct pt_bts_record);

	while (count && write_record(unit, area))
		count--;
}
