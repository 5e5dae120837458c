// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * For tests, instead of machine.c: registers of a trace unit, with the faults that the order of
 * writes can cause, and output. Each stretch between setting and clearing TraceEn writes
 * `model_bytes` bytes, each value followed by the next one, so that a reader sees what is missing:
 * on one processor, or with `model_shared` on all of them, of which one at a time may trace then.
 * It executes nothing: filters filter nothing.
 */
#include <linux/errno.h>
#include <linux/io.h>
#include <linux/module.h>
#include <linux/percpu.h>

#include "ptkit.h"
#include "ptkit/rtit_regs.h"

#define TRACE_EN BIT_ULL(PT_CTL_TRACE_EN)

static unsigned int model_bytes = 5000;
module_param(model_bytes, uint, 0644);
MODULE_PARM_DESC(model_bytes, "bytes that are written while TraceEn is set");

static int model_taken = -1;
module_param(model_taken, int, 0644);
MODULE_PARM_DESC(model_taken, "processor on which somebody else has set TraceEn; -1: none");

static int model_faulty = -1;
module_param(model_faulty, int, 0644);
MODULE_PARM_DESC(model_faulty, "processor on which writes of CTL fault; -1: none");

static bool model_shared;
module_param(model_shared, bool, 0644);
MODULE_PARM_DESC(model_shared, "values go on from one processor to the other");

/* Of the first processors, for tests to read. */
static unsigned long model_cr3_match[2];
module_param_array(model_cr3_match, ulong, NULL, 0444);
MODULE_PARM_DESC(model_cr3_match, "register CR3_MATCH when TraceEn was last set");

struct unit {
	u64 ctl;
	u64 status;
	u64 base;
	u64 mask_ptrs;
	u64 cr3_match;
	u64 addr[PT_ADDR_REGISTERS];
	u64 written;
};

static DEFINE_PER_CPU(struct unit, units);
static u64 written_by_all;

/* 4 address ranges; everything that the driver can be asked for but the transport. */
static void model_cpuid(u32 leaf, u32 subleaf, u32 words[4])
{
	static const u32 leaf_14[2][4] = {
		{1, 0x1bf, 0x80000007, 0},
		{0x02490004, 0x003f3fff, 0, 0},
	};
	static const u32 leaf_15[4] = { 2, 156, 38400000, 0 };

	memset(words, 0, 4 * sizeof(*words));
	if (leaf == 1)
		words[0] = 0x000906a4;
	else if (leaf == 7)
		words[1] = BIT(PT_CPUID_7_EBX_PT);
	else if (leaf == 0x14 && subleaf < 2)
		memcpy(words, leaf_14[subleaf], sizeof(leaf_14[subleaf]));
	else if (leaf == 0x15)
		memcpy(words, leaf_15, sizeof(leaf_15));
}

static u64 entry_of(const struct unit *unit)
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

static void set_place(struct unit *unit, u64 index, u64 offset)
{
	unit->mask_ptrs = offset << PT_OUTPUT_OFFSET_SHIFT | index << PT_OUTPUT_TABLE_OFFSET_SHIFT |
			  PT_OUTPUT_MASK_LOWEST;
}

/* Behind the region's last byte. */
static void next_region(struct unit *unit, u64 entry)
{
	u64 index = (unit->mask_ptrs >> PT_OUTPUT_TABLE_OFFSET_SHIFT) &
		    (BIT_ULL(PT_OUTPUT_TABLE_OFFSET_WIDTH) - 1);

	if (entry & BIT(PT_TOPA_STOP)) {
		unit->status |= BIT(PT_STATUS_STOPPED);
		return;
	}
	set_place(unit, index + 1, 0);
	entry = entry_of(unit);
	if (entry & BIT(PT_TOPA_END)) {
		unit->base = address_of(entry);
		set_place(unit, 0, 0);
	}
}

static void write_byte(struct unit *unit)
{
	u64 offset = unit->mask_ptrs >> PT_OUTPUT_OFFSET_SHIFT;
	u64 *written = READ_ONCE(model_shared) ? &written_by_all : &unit->written;
	u8 value = 1 + (*written)++ % 251; /* never zero, as traces rarely are */
	u64 entry;
	u64 bytes;

	if (!(unit->ctl & BIT(PT_CTL_TOPA))) {
		u64 mask = (u32)unit->mask_ptrs;

		*(u8 *)phys_to_virt(unit->base + offset) = value;
		unit->mask_ptrs = ((offset + 1) & mask) << PT_OUTPUT_OFFSET_SHIFT | mask;
		return;
	}
	entry = entry_of(unit);
	bytes = PT_TOPA_LEAST_BYTES << ((entry >> PT_TOPA_SIZE_SHIFT) & 15);
	*(u8 *)phys_to_virt(address_of(entry) + offset) = value;
	unit->mask_ptrs += BIT_ULL(PT_OUTPUT_OFFSET_SHIFT);
	if (offset + 1 == bytes)
		next_region(unit, entry);
}

static void write_stretch(struct unit *unit)
{
	unsigned int i;

	for (i = 0; i < READ_ONCE(model_bytes) && !(unit->status & BIT(PT_STATUS_STOPPED)); i++)
		write_byte(unit);
}

static int write_ctl(struct unit *unit, u64 value)
{
	u64 fixed = ~TRACE_EN;

	if (READ_ONCE(model_faulty) == smp_processor_id())
		return -EIO;
	/* While TraceEn is set it can only be cleared. */
	if ((unit->ctl & TRACE_EN) && (value & TRACE_EN) && value != unit->ctl)
		return -EIO;
	if ((unit->ctl & TRACE_EN) && !(value & TRACE_EN) && (value & fixed) == (unit->ctl & fixed))
		write_stretch(unit);
	unit->ctl = value;
	if ((value & TRACE_EN) && smp_processor_id() < ARRAY_SIZE(model_cr3_match))
		model_cr3_match[smp_processor_id()] = unit->cr3_match;
	return 0;
}

static u64 *register_of(struct unit *unit, u32 msr)
{
	if (msr >= PT_MSR_RTIT_ADDR0_A && msr < PT_MSR_RTIT_ADDR0_A + PT_ADDR_REGISTERS)
		return &unit->addr[msr - PT_MSR_RTIT_ADDR0_A];
	switch (msr) {
	case PT_MSR_RTIT_STATUS:
		return &unit->status;
	case PT_MSR_RTIT_OUTPUT_BASE:
		return &unit->base;
	case PT_MSR_RTIT_OUTPUT_MASK_PTRS:
		return &unit->mask_ptrs;
	case PT_MSR_RTIT_CR3_MATCH:
		return &unit->cr3_match;
	default:
		return NULL;
	}
}

static int model_write(void *ctx, u32 msr, u64 value)
{
	struct unit *unit = this_cpu_ptr(&units);
	u64 *stored = register_of(unit, msr);

	if (msr == PT_MSR_RTIT_CTL)
		return write_ctl(unit, value);
	if (!stored || (unit->ctl & TRACE_EN))
		return -EIO;
	*stored = value;
	return 0;
}

static int model_read(void *ctx, u32 msr, u64 *value)
{
	struct unit *unit = this_cpu_ptr(&units);
	const u64 *stored = msr == PT_MSR_RTIT_CTL ? &unit->ctl : register_of(unit, msr);

	if (!stored)
		return -EIO;
	*value = *stored;
	if (msr == PT_MSR_RTIT_CTL && READ_ONCE(model_taken) == smp_processor_id())
		*value |= TRACE_EN;
	return 0;
}

/* There are none: what an entry with INT says is seen at the next pause. */
static void model_arm_interrupt(void)
{
}

const struct ptkit_machine ptkit_machine = {
	.cpuid = model_cpuid,
	.arm_interrupt = model_arm_interrupt,
	.ops = {
		.write = model_write,
		.read = model_read,
	},
};
