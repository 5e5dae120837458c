// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * A model of the processor for tests, instead of machine.c: registers of a trace unit, the faults
 * that a wrong order of writes causes, and output. Between setting and clearing TraceEn the model
 * writes `model_bytes` bytes, which count up, so that a test sees missing bytes. Each processor
 * counts for itself. With `model_shared` all processors count together; then one at a time may
 * trace. Branch Trace Store works the same way. Interrupts are NMIs, which come while registers are
 * accessed or afterwards. The model executes no code, so filters have no effect.
 */
#include <linux/atomic.h>
#include <linux/delay.h>
#include <linux/errno.h>
#include <linux/hardirq.h>
#include <linux/irq_work.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/percpu.h>
#include <linux/smp.h>
#include <linux/sysfs.h>

#include <asm/apic.h>
#include <asm/irq_vectors.h>
#include <asm/nmi.h>
#include <asm/tsc.h>

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

static unsigned int model_signature = 0x000506e3;
module_param(model_signature, uint, 0444);
MODULE_PARM_DESC(model_signature, "family, model and stepping: CPUID 1 EAX");

static bool model_no_counters;
module_param(model_no_counters, bool, 0444);
MODULE_PARM_DESC(model_no_counters, "registers of performance monitoring fault, as in some guests");

/* 4 address ranges, and all that the driver uses. */
static unsigned int model_cpu0[] = { BIT(PT_CPUID_7_EBX_PT), 0x1bf, 0x80000007, 0x02490004,
				     0x003f3fff };
module_param_array(model_cpu0, uint, NULL, 0444);
MODULE_PARM_DESC(model_cpu0, "words of CPUID on processor 0: 7H EBX, 14H EBX, ECX, 14H.1 EAX, EBX");

static unsigned int model_cpu1[] = { BIT(PT_CPUID_7_EBX_PT), 0x1bf, 0x80000007, 0x02490004,
				     0x003f3fff };
module_param_array(model_cpu1, uint, NULL, 0444);
MODULE_PARM_DESC(model_cpu1, "the same of other processors");

static unsigned int model_slow_us;
module_param(model_slow_us, uint, 0644);
MODULE_PARM_DESC(model_slow_us, "how long a write of CTL takes");

static bool model_vmx = true;
module_param(model_vmx, bool, 0444);
MODULE_PARM_DESC(model_vmx, "whether tracing is possible in VMX operation");

static bool model_lam;
module_param(model_lam, bool, 0444);
MODULE_PARM_DESC(model_lam, "linear address masking");

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

static unsigned int model_late_us = 1000000;
module_param(model_late_us, uint, 0644);
MODULE_PARM_DESC(model_late_us, "how late an interrupt may be after it was acknowledged");

static int model_swallow;

/* The other handler claims the NMI, too. */
static int claim_swallowed(unsigned int command, struct pt_regs *registers)
{
	return NMI_HANDLED;
}

static int set_swallow(const char *text, const struct kernel_param *parameter)
{
	int before = model_swallow;
	int error = kstrtoint(text, 0, &model_swallow);

	if (!error && !before && model_swallow)
		error = register_nmi_handler(NMI_UNKNOWN, claim_swallowed, 0, "ptkit_swallow");
	else if (!error && before && !model_swallow)
		unregister_nmi_handler(NMI_UNKNOWN, "ptkit_swallow");
	return error;
}

static const struct kernel_param_ops swallow_ops = { .set = set_swallow };
module_param_cb(model_swallow, &swallow_ops, NULL, 0200);
MODULE_PARM_DESC(model_swallow,
		 "another handler acknowledges interrupts first; 2: they are not delivered, too");

static bool model_shared;
module_param(model_shared, bool, 0644);
MODULE_PARM_DESC(model_shared, "values go on from one processor to the other");

/* CR3_MATCH of the first processors, for tests to read. */
static unsigned long model_cr3_match[2];
module_param_array(model_cr3_match, ulong, NULL, 0444);
MODULE_PARM_DESC(model_cr3_match, "register CR3_MATCH when TraceEn was last set");

static DEFINE_PER_CPU(struct model_unit, units);
static u64 written_by_all;

/* Zeros as after a reset, or what another tracer left: values that differ with `seed`. */
static void set_unit(struct model_unit *unit, u64 seed)
{
	int i;

	unit->ctl = seed << PT_CTL_CYC_EN;
	unit->debugctl = 0;
	unit->status = seed << PT_STATUS_PACKET_BYTE_COUNT_SHIFT;
	unit->base = seed << PAGE_SHIFT;
	unit->mask_ptrs = seed ? seed << PT_OUTPUT_OFFSET_SHIFT | PT_OUTPUT_MASK_LOWEST : 0;
	unit->global_status = 0;
	unit->countdown = 0;
	unit->cr3_match = seed << PAGE_SHIFT;
	for (i = 0; i < PT_ADDR_REGISTERS; i++)
		unit->addr[i] = seed << i;
}

static void set_registers_here(void *seed)
{
	set_unit(this_cpu_ptr(&units), *(const unsigned int *)seed);
}

void model_reset(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu)
		set_unit(per_cpu_ptr(&units, cpu), 0);
}

static int set_registers(const char *text, const struct kernel_param *parameter)
{
	unsigned int seed;
	int error = kstrtouint(text, 0, &seed);

	if (!error)
		on_each_cpu(set_registers_here, &seed, 1);
	return error;
}

static int get_registers(char *text, const struct kernel_param *parameter)
{
	unsigned int cpu;
	int length = 0;

	for_each_possible_cpu(cpu) {
		const struct model_unit *unit = per_cpu_ptr(&units, cpu);
		int i;

		length += sysfs_emit_at(text, length, "%llx %llx %llx %llx %llx", unit->ctl,
					unit->status, unit->base, unit->mask_ptrs, unit->cr3_match);
		for (i = 0; i < PT_ADDR_REGISTERS; i++)
			length += sysfs_emit_at(text, length, " %llx", unit->addr[i]);
		length += sysfs_emit_at(text, length, "\n");
	}
	return length;
}

static const struct kernel_param_ops register_ops = { .set = set_registers, .get = get_registers };
module_param_cb(model_registers, &register_ops, NULL, 0644);
MODULE_PARM_DESC(model_registers, "0: as after a reset; other numbers: as another tracer left them");

unsigned long model_enabled_units(void)
{
	unsigned long enabled = 0;
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		if (per_cpu(units.ctl, cpu) & TRACE_EN ||
		    per_cpu(units.debugctl, cpu) & BIT(PT_DEBUGCTL_TR))
			enabled |= BIT(cpu % BITS_PER_LONG);
	}
	return enabled;
}

static int get_enabled(char *text, const struct kernel_param *parameter)
{
	return sysfs_emit(text, "%lu\n", model_enabled_units());
}

static const struct kernel_param_ops enabled_ops = { .get = get_enabled };
module_param_cb(model_enabled, &enabled_ops, NULL, 0444);
MODULE_PARM_DESC(model_enabled, "bit mask of processors on which TraceEn or DEBUGCTL.TR is set");

static int get_interrupt_entries(char *text, const struct kernel_param *parameter)
{
	return sysfs_emit(text, "%u\n", model_interrupt_entries(per_cpu_ptr(&units, 0)));
}

static const struct kernel_param_ops interrupt_entries_ops = { .get = get_interrupt_entries };
module_param_cb(model_interrupt_entries, &interrupt_entries_ops, NULL, 0444);
MODULE_PARM_DESC(model_interrupt_entries, "regions of processor 0 whose end causes an interrupt");

static int get_in_use(char *text, const struct kernel_param *parameter)
{
	return sysfs_emit(text, "%d\n", ptkit_in_use());
}

static const struct kernel_param_ops in_use_ops = { .get = get_in_use };
module_param_cb(model_in_use, &in_use_ops, NULL, 0444);
MODULE_PARM_DESC(model_in_use, "whether any session has processors, or listens to the kernel");

static void model_cpuid(u32 leaf, u32 subleaf, u32 words[4])
{
	const unsigned int *of_processor = smp_processor_id() ? model_cpu1 : model_cpu0;
	static const u32 leaf_15[4] = { 2, 156, 38400000, 0 };

	memset(words, 0, 4 * sizeof(*words));
	if (leaf == 1) {
		words[0] = model_signature;
		words[2] = BIT(PT_CPUID_1_ECX_VMX) | BIT(PT_CPUID_1_ECX_DTES64);
		if (model_bts == 2)
			words[2] |= BIT(PT_CPUID_1_ECX_DS_CPL);
		if (model_bts)
			words[3] = BIT(PT_CPUID_1_EDX_DS);
	} else if (leaf == 7 && !subleaf) {
		words[0] = 1;
		words[1] = of_processor[0];
	} else if (leaf == 7 && model_lam) {
		words[0] = BIT(PT_CPUID_7_1_EAX_LAM);
	} else if (leaf == 0x14 && subleaf == 0) {
		words[0] = 1;
		words[1] = of_processor[1];
		words[2] = of_processor[2];
	} else if (leaf == 0x14 && subleaf == 1) {
		words[0] = of_processor[3];
		words[1] = of_processor[4];
	} else if (leaf == 0x15) {
		memcpy(words, leaf_15, sizeof(leaf_15));
	}
}

/* The register of the local APIC is real; only what raises the interrupt is an IPI. */
bool model_is_armed(void)
{
	u32 entry = apic->read(APIC_LVTPC);

	return !(entry & APIC_LVT_MASKED) && GET_APIC_DELIVERY_MODE(entry) == APIC_MODE_NMI;
}

/* An interrupt; delivery masks it. */
void model_deliver(struct model_unit *unit)
{
	const u64 topa = BIT_ULL(PT_PERF_GLOBAL_TRACE_TOPA_PMI);
	int swallow = READ_ONCE(model_swallow);

	unit->countdown = 0;
	if (swallow)
		unit->global_status &= ~topa;
	if (!model_is_armed() || swallow == 2)
		return;
	apic->write(APIC_LVTPC, apic->read(APIC_LVTPC) | APIC_LVT_MASKED);
	if (!in_nmi()) /* otherwise it comes later: perf may have acknowledged it then */
		unit->noticeable = !unit->in_access || unit->global_status & topa;
	model_interrupts++;
	apic->send_IPI(smp_processor_id(), NMI_VECTOR);
}

static void deliver_late(struct irq_work *work)
{
	struct model_unit *unit = this_cpu_ptr(&units);

	if (unit->countdown)
		model_deliver(unit);
}

static void deliver_here(void *unused)
{
	deliver_late(NULL);
}

/* After each access, and when code was executed. */
void model_tick(struct model_unit *unit)
{
	int after = READ_ONCE(model_interrupt_after);

	model_count_access();
	if (unit->interrupt && after >= 0) {
		unit->countdown = after + 1;
		if (!READ_ONCE(model_interrupt_waits))
			irq_work_queue(&unit->late);
	}
	unit->interrupt = false;
	if (unit->countdown && !--unit->countdown)
		model_deliver(unit);
}

struct model_unit *model_this_unit(void)
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
	if (unit->in_vmx && (value & TRACE_EN))
		return -EIO;
	/* CTL: a write that keeps TraceEn set and changes another bit faults. */
	if ((before & TRACE_EN) && (value & TRACE_EN) && value != before)
		return -EIO;
	udelay(READ_ONCE(model_slow_us));
	unit->ctl = value;
	unit->cleared_by_vmxon = false;
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
	struct model_unit *unit = model_this_unit();
	int error = faults() ? -EIO : write_register(unit, msr, value);

	model_tick(unit);
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
		if (model_no_counters)
			return -EIO;
		*value = unit->global_status;
		return 0;
	case PT_MSR_PEBS_ENABLE:
		*value = READ_ONCE(model_precise) == smp_processor_id();
		return 0;
	case PT_MSR_PLATFORM_INFO:
		*value = 21 << PT_PLATFORM_INFO_MAX_NON_TURBO_SHIFT | 0xff;
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
	struct model_unit *unit = model_this_unit();
	int error = faults() ? -EIO : read_register(unit, msr, value);

	model_tick(unit);
	return error;
}

static void model_arm_interrupt(void)
{
	apic->write(APIC_LVTPC, APIC_DM_NMI);
}

static unsigned int model_unknown;
module_param(model_unknown, uint, 0444);
MODULE_PARM_DESC(model_unknown, "interrupts that came with model_deliver, and that no handler claimed");

static int claim_unknown(unsigned int command, struct pt_regs *registers)
{
	model_unknown++;
	return NMI_HANDLED;
}

/* Delivers the interrupt that is on its way on processor 0. */
static int set_deliver(const char *text, const struct kernel_param *parameter)
{
	int error = register_nmi_handler(NMI_UNKNOWN, claim_unknown, 0, "ptkit_model");

	if (error)
		return error;
	smp_call_function_single(0, deliver_here, NULL, 1);
	unregister_nmi_handler(NMI_UNKNOWN, "ptkit_model");
	return 0;
}

static const struct kernel_param_ops deliver_ops = { .set = set_deliver };
module_param_cb(model_deliver, &deliver_ops, NULL, 0200);
MODULE_PARM_DESC(model_deliver, "written: an interrupt that waits comes now");

static u64 model_late_ticks(void)
{
	return (u64)READ_ONCE(model_late_us) * tsc_khz / 1000;
}

const struct ptkit_machine model_machine = {
	.cpuid = model_cpuid,
	.arm_interrupt = model_arm_interrupt,
	.late_ticks = model_late_ticks,
	.ops = {
		.write = model_write,
		.read = model_read,
	},
};
