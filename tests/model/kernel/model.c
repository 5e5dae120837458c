// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A model of the processor for tests, in place of machine.c: registers of a trace unit, the faults
 * that a wrong order of writes causes, and output. Between setting and clearing TraceEn the model
 * writes `model_bytes` bytes, which count up, so that a test sees missing bytes. Each processor
 * counts for itself. With `model_shared` all processors count together; then one at a time may
 * trace. Branch Trace Store works the same way. Interrupts are NMIs, which come while registers are
 * accessed or afterwards. The model executes no code, so filters have no effect.
 */
#include <linux/atomic.h>
#include <linux/errno.h>
#include <linux/irq_work.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/sysfs.h>

#include <asm/apic.h>
#include <asm/irq_vectors.h>

#include "machine/machine.h"
#include "main.h"
#include "model.h"
#include "ptkit/rtit_regs.h"

#define TRACE_EN BIT_ULL(PT_CTL_TRACE_EN)

static unsigned int model_bytes = 5000;
module_param(model_bytes, uint, 0644);
MODULE_PARM_DESC(model_bytes, "bytes that are written while TraceEn is set");

static int model_taken = -1;
module_param(model_taken, int, 0644);
MODULE_PARM_DESC(model_taken, "processor on which another tracer has set TraceEn; -1: none");

static int model_faulty = -1;
module_param(model_faulty, int, 0644);
MODULE_PARM_DESC(model_faulty, "processor on which writes of CTL fault; -1: none");

static int model_precise = -1;
module_param(model_precise, int, 0644);
MODULE_PARM_DESC(model_precise, "processor on which another user has enabled PEBS; -1: none");

static int model_cleared = -1;
module_param(model_cleared, int, 0644);
MODULE_PARM_DESC(model_cleared, "processor on which another tracer clears TraceEn; -1: none");

static unsigned int model_faults = 1;
module_param(model_faults, uint, 0644);
MODULE_PARM_DESC(model_faults, "accesses of registers that fault, one after the other");

/* Accesses up to the last one that faults, and how many of them succeed. */
static atomic_t accesses_left;

static int set_fault(const char *text, const struct kernel_param *parameter)
{
	unsigned int number;
	int error = kstrtouint(text, 0, &number);

	if (!error)
		atomic_set(&accesses_left, number ? number + model_faults - 1 : 0);
	return error;
}

static int get_fault(char *text, const struct kernel_param *parameter)
{
	return sysfs_emit(text, "%d\n", atomic_read(&accesses_left));
}

static const struct kernel_param_ops fault_ops = { .set = set_fault, .get = get_fault };
module_param_cb(model_fault, &fault_ops, NULL, 0644);
MODULE_PARM_DESC(model_fault,
		 "number of the access, from 1 on, that faults first; 0: none. Read: how many are left");

static bool model_vmx = true;
module_param(model_vmx, bool, 0444);
MODULE_PARM_DESC(model_vmx, "whether tracing is possible in VMX operation");

static int model_bts = 2;
module_param(model_bts, int, 0444);
MODULE_PARM_DESC(model_bts,
		 "Branch Trace Store: 2: yes; 1: not of one level alone; 0: no; -1: switched off");

static bool model_eager;
module_param(model_eager, bool, 0644);
MODULE_PARM_DESC(model_eager, "write when TraceEn is set, not when it is cleared");

static int model_interrupt_after = -1;
module_param(model_interrupt_after, int, 0644);
MODULE_PARM_DESC(model_interrupt_after,
		 "accesses of registers until an interrupt comes, if there are so many; -1: none");

static bool model_interrupt_waits;
module_param(model_interrupt_waits, bool, 0644);
MODULE_PARM_DESC(model_interrupt_waits, "until there are so many, however long that is");

static unsigned int model_interrupts;
module_param(model_interrupts, uint, 0444);
MODULE_PARM_DESC(model_interrupts, "how many came");

static bool model_shared;
module_param(model_shared, bool, 0644);
MODULE_PARM_DESC(model_shared, "values go on from one processor to the other");

/* CR3_MATCH of the first processors, for tests to read. */
static unsigned long model_cr3_match[2];
module_param_array(model_cr3_match, ulong, NULL, 0444);
MODULE_PARM_DESC(model_cr3_match, "register CR3_MATCH when TraceEn was last set");

static DEFINE_PER_CPU(struct model_unit, units);
static u64 written_by_all;

static void reset_here(void *unused)
{
	struct model_unit *unit = this_cpu_ptr(&units);

	unit->ctl = 0;
	unit->debugctl = 0;
	unit->status = 0;
	unit->base = 0;
	unit->mask_ptrs = 0;
	unit->global_status = 0;
}

/* Acts as a reset of all processors. */
static int reset_units(const char *text, const struct kernel_param *parameter)
{
	on_each_cpu(reset_here, NULL, 1);
	return 0;
}

static const struct kernel_param_ops reset_ops = { .set = reset_units };
module_param_cb(model_reset, &reset_ops, NULL, 0200);
MODULE_PARM_DESC(model_reset, "written: registers of all units are zero");

static int get_enabled(char *text, const struct kernel_param *parameter)
{
	unsigned long enabled = 0;
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		if (per_cpu(units.ctl, cpu) & TRACE_EN ||
		    per_cpu(units.debugctl, cpu) & BIT(PT_DEBUGCTL_TR))
			enabled |= BIT(cpu % BITS_PER_LONG);
	}
	return sysfs_emit(text, "%lu\n", enabled);
}

static const struct kernel_param_ops enabled_ops = { .get = get_enabled };
module_param_cb(model_enabled, &enabled_ops, NULL, 0444);
MODULE_PARM_DESC(model_enabled, "bit mask of processors on which TraceEn or DEBUGCTL.TR is set");

static int get_in_use(char *text, const struct kernel_param *parameter)
{
	return sysfs_emit(text, "%d\n", ptkit_in_use());
}

static const struct kernel_param_ops in_use_ops = { .get = get_in_use };
module_param_cb(model_in_use, &in_use_ops, NULL, 0444);
MODULE_PARM_DESC(model_in_use, "whether any session has processors, or listens to the kernel");

/* 4 address ranges, and all capabilities that the driver uses. */
static void model_cpuid(u32 leaf, u32 subleaf, u32 words[4])
{
	static const u32 leaf_14[2][4] = {
		{1, 0x1bf, 0x80000007, 0},
		{0x02490004, 0x003f3fff, 0, 0},
	};
	static const u32 leaf_15[4] = { 2, 156, 38400000, 0 };

	memset(words, 0, 4 * sizeof(*words));
	if (leaf == 1) {
		words[0] = 0x000906a4;
		words[2] = BIT(PT_CPUID_1_ECX_VMX) | BIT(PT_CPUID_1_ECX_DTES64);
		if (model_bts == 2)
			words[2] |= BIT(PT_CPUID_1_ECX_DS_CPL);
		if (model_bts)
			words[3] = BIT(PT_CPUID_1_EDX_DS);
	} else if (leaf == 7) {
		words[1] = BIT(PT_CPUID_7_EBX_PT);
	} else if (leaf == 0x14 && subleaf < 2) {
		memcpy(words, leaf_14[subleaf], sizeof(leaf_14[subleaf]));
	} else if (leaf == 0x15) {
		memcpy(words, leaf_15, sizeof(leaf_15));
	}
}

/* An interrupt; delivery masks it. */
static void deliver(struct model_unit *unit)
{
	unit->countdown = 0;
	if (!unit->armed)
		return;
	unit->armed = false;
	model_interrupts++;
	apic->send_IPI(smp_processor_id(), NMI_VECTOR);
}

static void deliver_late(struct irq_work *work)
{
	struct model_unit *unit = this_cpu_ptr(&units);

	if (unit->countdown)
		deliver(unit);
}

/* After each access. */
static void tick(struct model_unit *unit)
{
	int after = READ_ONCE(model_interrupt_after);

	if (unit->interrupt && after >= 0) {
		unit->countdown = after + 1;
		if (!READ_ONCE(model_interrupt_waits))
			irq_work_queue(&unit->late);
	}
	unit->interrupt = false;
	if (unit->countdown && !--unit->countdown)
		deliver(unit);
}

static struct model_unit *this_unit(void)
{
	static DEFINE_PER_CPU(u64, written);
	struct model_unit *unit = this_cpu_ptr(&units);

	unit->late.func = deliver_late; /* a module's per-CPU data is not relocated */
	unit->written = READ_ONCE(model_shared) ? &written_by_all : this_cpu_ptr(&written);
	return unit;
}

/* Whether this change of TraceEn writes bytes. */
static bool writes_now(bool was, bool is)
{
	return READ_ONCE(model_eager) ? is && !was : was && !is;
}

static int write_ctl(struct model_unit *unit, u64 value)
{
	u64 before = unit->ctl;

	if (READ_ONCE(model_faulty) == smp_processor_id())
		return -EIO;
	/* CTL: a write that keeps TraceEn set and changes another bit faults. */
	if ((before & TRACE_EN) && (value & TRACE_EN) && value != before)
		return -EIO;
	unit->ctl = value;
	if (writes_now(before & TRACE_EN, value & TRACE_EN)) {
		unit->ctl = before | value;
		model_write_packets(unit, READ_ONCE(model_bytes));
		unit->ctl = value;
	}
	if ((value & TRACE_EN) && smp_processor_id() < ARRAY_SIZE(model_cr3_match))
		model_cr3_match[smp_processor_id()] = unit->cr3_match;
	return 0;
}

static int write_debugctl(struct model_unit *unit, u64 value)
{
	const u64 on = BIT(PT_DEBUGCTL_TR) | BIT(PT_DEBUGCTL_BTS);
	u64 before = unit->debugctl;

	if (READ_ONCE(model_faulty) == smp_processor_id())
		return -EIO;
	unit->debugctl = value;
	if (writes_now((before & on) == on, (value & on) == on)) {
		unit->debugctl = before | value;
		model_write_records(unit, READ_ONCE(model_bytes));
		unit->debugctl = value;
	}
	return 0;
}

static u64 *register_of(struct model_unit *unit, u32 msr)
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
	case PT_MSR_DS_AREA:
		return &unit->ds_area;
	default:
		return NULL;
	}
}

static bool always_writable(u32 msr)
{
	return msr == PT_MSR_DS_AREA;
}

static int write_register(struct model_unit *unit, u32 msr, u64 value)
{
	u64 *stored = register_of(unit, msr);

	switch (msr) {
	case PT_MSR_RTIT_CTL:
		return write_ctl(unit, value);
	case PT_MSR_DEBUGCTL:
		return write_debugctl(unit, value);
	case PT_MSR_PERF_GLOBAL_OVF_CTRL:
		unit->global_status &= ~value;
		return 0;
	default:
		break;
	}
	if (!stored || ((unit->ctl & TRACE_EN) && !always_writable(msr)))
		return -EIO;
	*stored = value;
	return 0;
}

/* Whether this access faults. */
static bool faults(void)
{
	int left = atomic_dec_if_positive(&accesses_left);

	return left >= 0 && left < READ_ONCE(model_faults);
}

static int model_write(void *ctx, u32 msr, u64 value)
{
	struct model_unit *unit = this_unit();
	int error = faults() ? -EIO : write_register(unit, msr, value);

	tick(unit);
	return error;
}

static u64 read_ctl(struct model_unit *unit)
{
	bool cleared = READ_ONCE(model_cleared) == smp_processor_id();

	if (cleared && (unit->ctl & TRACE_EN))
		write_ctl(unit, unit->ctl & ~TRACE_EN);
	return READ_ONCE(model_taken) == smp_processor_id() ? unit->ctl | TRACE_EN : unit->ctl;
}

static int read_register(struct model_unit *unit, u32 msr, u64 *value)
{
	const u64 *stored = register_of(unit, msr);

	switch (msr) {
	case PT_MSR_RTIT_CTL:
		*value = read_ctl(unit);
		return 0;
	case PT_MSR_DEBUGCTL:
		*value = unit->debugctl;
		return 0;
	case PT_MSR_PERF_GLOBAL_STATUS:
		*value = unit->global_status;
		return 0;
	case PT_MSR_PEBS_ENABLE:
		*value = READ_ONCE(model_precise) == smp_processor_id();
		return 0;
	case PT_MSR_VMX_MISC:
		*value = model_vmx ? BIT(PT_VMX_MISC_PT_IN_VMX) : 0;
		return 0;
	case PT_MSR_MISC_ENABLE:
		*value = model_bts < 0 ? BIT(PT_MISC_ENABLE_BTS_UNAVAILABLE) : 0;
		return 0;
	default:
		break;
	}
	if (!stored)
		return -EIO;
	*value = *stored;
	return 0;
}

static int model_read(void *ctx, u32 msr, u64 *value)
{
	struct model_unit *unit = this_unit();
	int error = faults() ? -EIO : read_register(unit, msr, value);

	tick(unit);
	return error;
}

static void model_arm_interrupt(void)
{
	this_unit()->armed = true;
}

const struct ptkit_machine ptkit_machine = {
	.cpuid = model_cpuid,
	.arm_interrupt = model_arm_interrupt,
	.ops = {
		.write = model_write,
		.read = model_read,
	},
};
