// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * All functions but init, free and exit run on the processor of the trace, with interrupts off.
 *
 * perf and KVM use the same registers. perf keeps a copy of some of them, and does not write those
 * that its copy says are right. It does not look whether TraceEn is set.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/percpu.h>
#include <linux/printk.h>

#include <asm/nmi.h>
#include <asm/tsc.h>

#include "common/pt_unit.h"
#include "machine/machine.h"
#include "unit/bts.h"
#include "unit/memory.h"
#include "unit/running.h"

static u64 ticks(void)
{
	return rdtsc_ordered();
}

static DEFINE_PER_CPU(struct pt_unit, units);

/*
 * An NMI interrupts these functions although interrupts are off. So they set `at_work`; the handler
 * then only sets `missed`, and end_work() serves the interrupt.
 */
struct guard {
	struct ptkit_trace *trace; /* runs here, with interrupts */
	bool at_work;
	bool missed;
	u64 late_until; /* TSC; until then an interrupt may come that is acknowledged already */
};

static DEFINE_PER_CPU(struct guard, guards);

static void start(struct ptkit_trace *trace)
{
	trace->cpu = smp_processor_id();
	if (trace->interrupts)
		ptkit_machine.arm_interrupt();
	pt_unit_start(this_cpu_ptr(&units), &trace->pt);
	if (trace->pt.error)
		irq_work_queue(&trace->work);
}

/* Frees room, and continues tracing. No other handler moves the index of Branch Trace Store. */
static void switch_buffer(struct ptkit_trace *trace)
{
	struct pt_unit *unit = this_cpu_ptr(&units);

	if (trace->pt.bts && !pt_unit_interrupts(unit, &trace->pt))
		return;
	pt_unit_stop(unit, &trace->pt, true);
	if (trace->pt.wanted && pt_unit_has_room(&trace->pt)) {
		start(trace);
		return;
	}
	pt_unit_leave(unit, &trace->pt);
	ptkit_machine.arm_interrupt();
}

static void take_interrupt(struct ptkit_trace *trace)
{
	switch_buffer(trace);
	if (!trace->pt.running)
		this_cpu_write(guards.trace, NULL);
	irq_work_queue(&trace->work);
}

/* The interrupt is acknowledged afterwards, but may not be delivered yet. */
static void expect_late_interrupt(void)
{
	this_cpu_write(guards.late_until, rdtsc() + ptkit_machine.late_ticks());
	barrier();
}

static void was_acknowledged(void)
{
	barrier();
	if (this_cpu_read(guards.missed)) {
		this_cpu_write(guards.late_until, 0);
		ptkit_machine.arm_interrupt();
	}
}

/* The interrupt that comes with it may be delivered later. */
static void take_early(struct ptkit_trace *trace)
{
	expect_late_interrupt();
	take_interrupt(trace);
	was_acknowledged();
}

static void begin_work(struct ptkit_trace *trace)
{
	this_cpu_write(guards.at_work, true);
	barrier();
	if (trace->interrupts)
		this_cpu_write(guards.trace, trace);
}

static void end_work(struct ptkit_trace *trace)
{
	if (!trace->pt.running)
		this_cpu_write(guards.trace, NULL);
	for (;;) {
		barrier();
		this_cpu_write(guards.at_work, false);
		barrier();
		if (!this_cpu_read(guards.missed))
			return;
		this_cpu_write(guards.at_work, true);
		barrier();
		this_cpu_write(guards.missed, false);
		if (trace->pt.running)
			take_early(trace);
	}
}

/* Runs before perf's handler, which would handle the interrupt as one of perf's. */
static int handle_interrupt(unsigned int command, struct pt_regs *registers)
{
	struct ptkit_trace *trace = this_cpu_read(guards.trace);

	if (trace && pt_unit_interrupts(this_cpu_ptr(&units), &trace->pt)) {
		if (this_cpu_read(guards.at_work))
			this_cpu_write(guards.missed, true);
		else
			take_interrupt(trace);
		return NMI_HANDLED;
	}
	if (rdtsc() >= this_cpu_read(guards.late_until))
		return NMI_DONE;
	this_cpu_write(guards.late_until, 0);
	ptkit_machine.arm_interrupt();
	return NMI_HANDLED;
}

/*
 * Runs after perf's handler. That one acknowledges interrupts of the trace unit, too, if they come
 * while it handles one of perf's; no other NMI follows. While the driver is at work,
 * handle_interrupt() has set `missed`, or the next PTKIT_STATUS finds that the unit has stopped.
 */
static int handle_taken_interrupt(unsigned int command, struct pt_regs *registers)
{
	struct ptkit_trace *trace = this_cpu_read(guards.trace);

	if (trace && !this_cpu_read(guards.at_work) &&
	    pt_unit_has_stopped(this_cpu_ptr(&units), &trace->pt))
		take_early(trace);
	return NMI_DONE;
}

static void wake_up_readers(struct irq_work *work)
{
	struct ptkit_trace *trace = container_of(work, struct ptkit_trace, work);

	wake_up_interruptible(trace->wait);
}

void ptkit_trace_init(struct ptkit_trace *trace, unsigned int number, struct ptkit_follow *follow)
{
	trace->number = number;
	trace->cpu = number;
	trace->follow = follow;
	init_irq_work(&trace->work, wake_up_readers);
}

void ptkit_trace_free(struct ptkit_trace *trace)
{
	irq_work_sync(&trace->work);
	if (trace->pt.running) {
		pr_err("CPU %u cannot be stopped: its buffer stays\n", trace->cpu);
		ptkit_memory_abandon(&trace->pt.memory);
		ptkit_bts_abandon(trace);
		return;
	}
	ptkit_memory_free(&trace->pt.memory);
	ptkit_bts_free(trace);
}

void ptkit_run(struct ptkit_trace *trace)
{
	begin_work(trace);
	if (pt_unit_prepare(this_cpu_ptr(&units), &trace->pt))
		start(trace);
	end_work(trace);
}

void ptkit_halt(struct ptkit_trace *trace)
{
	struct pt_unit *unit = this_cpu_ptr(&units);

	begin_work(trace);
	pt_unit_stop(unit, &trace->pt, false);
	pt_unit_leave(unit, &trace->pt);
	if (trace->interrupts && pt_unit_interrupts(unit, &trace->pt)) {
		expect_late_interrupt();
		pt_unit_acknowledge(unit, &trace->pt);
		was_acknowledged();
		irq_work_queue(&trace->work);
	}
	end_work(trace);
}

void ptkit_serve(struct ptkit_trace *trace)
{
	const struct pt_unit *unit = this_cpu_ptr(&units);

	/* A hypervisor that runs a guest has interrupts off: it does not hide TraceEn here. */
	begin_work(trace);
	if (trace->pt.running &&
	    (pt_unit_interrupts(unit, &trace->pt) || pt_unit_has_stopped(unit, &trace->pt) ||
	     pt_unit_is_cleared(unit, &trace->pt)))
		take_early(trace);
	end_work(trace);
}

bool ptkit_is_live(struct ptkit_trace *trace)
{
	return pt_unit_is_live(this_cpu_ptr(&units), &trace->pt);
}

void ptkit_forget(const struct ptkit_trace *trace)
{
	if (this_cpu_read(guards.trace) == trace)
		this_cpu_write(guards.trace, NULL);
}

int ptkit_interrupts_init(void)
{
	unsigned int cpu;
	int error;

	/* The kernel does not relocate initial values of per-CPU variables of modules. */
	for_each_possible_cpu(cpu) {
		per_cpu(units.ops, cpu) = &ptkit_machine.ops;
		per_cpu(units.ticks, cpu) = ticks;
	}
	error = register_nmi_handler(NMI_LOCAL, handle_interrupt, NMI_FLAG_FIRST, "ptkit");
	if (error)
		return error;
	error = register_nmi_handler(NMI_LOCAL, handle_taken_interrupt, 0, "ptkit_taken");
	if (error)
		unregister_nmi_handler(NMI_LOCAL, "ptkit");
	return error;
}

void ptkit_interrupts_exit(void)
{
	unregister_nmi_handler(NMI_LOCAL, "ptkit_taken");
	unregister_nmi_handler(NMI_LOCAL, "ptkit");
}
