// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * All functions but init and exit run on the processor of the trace, and nothing of the driver
 * interrupts them: unlike Linux' NMI, the interrupt of performance monitoring waits while
 * interrupts are off.
 */
#include "unit/running.h"

#include "common/pt_branches.h"
#include "common/pt_unit.h"
#include "machine/machine.h"
#include "machine/pool.h"
#include "ptkit/ptkit_windows.h"

struct unit {
	struct pt_unit pt;
	struct ptkit_trace *loaded; /* its registers are in the unit */
};

static struct unit *units; /* by processor */
static bool have_interrupts;
static bool re_arm;

static struct unit *unit_here(void)
{
	return &units[ptkit_machine.cpu_here()];
}

/* For the marks of Branch Trace Store. */
static void note_thread(struct ptkit_trace *trace)
{
	struct pt_bts *bts = trace->pt.bts;

	if (!bts)
		return;
	bts->thread.pid = (int32_t)(ULONG_PTR)PsGetCurrentProcessId();
	bts->thread.tid = (int32_t)(ULONG_PTR)PsGetCurrentThreadId();
}

static void start(struct ptkit_trace *trace)
{
	bool interrupts = trace->pt.bts ? !trace->pt.ring : trace->pt.wakes_up;

	if (interrupts && re_arm)
		ptkit_machine.arm_interrupt();
	note_thread(trace);
	pt_unit_start(&unit_here()->pt, &trace->pt);
	if (trace->pt.error)
		ptkit_report(trace->waiter, PTKIT_EVENT_FULL);
}

static void stop(struct ptkit_trace *trace, bool acknowledges)
{
	note_thread(trace);
	if (pt_unit_stop(&unit_here()->pt, &trace->pt, acknowledges))
		ptkit_report(trace->waiter, PTKIT_EVENT_CLEARED);
}

static void leave(struct ptkit_trace *trace)
{
	if (trace->pt.running)
		return;
	pt_unit_leave(&unit_here()->pt, &trace->pt);
	unit_here()->loaded = NULL;
}

/* With wake-ups; every tick writes some packets, which are not worth an event. */
static void report_data(struct ptkit_trace *trace, bool ends)
{
	uint64_t bytes = trace->pt.head - trace->reported;

	if (!bytes || (!ends && bytes < trace->event_bytes))
		return;
	trace->reported = trace->pt.head;
	ptkit_report(trace->waiter, PTKIT_EVENT_DATA);
}

/* Hands what was recorded over, and continues tracing. */
static void switch_buffer(struct ptkit_trace *trace)
{
	/* Without a PMU there is no interrupt to acknowledge. */
	stop(trace, trace->pt.wakes_up);
	if (trace->pt.wanted && pt_unit_has_room(&trace->pt))
		start(trace);
	leave(trace);
	report_data(trace, !trace->pt.running);
	if (!trace->pt.running)
		ptkit_report(trace->waiter, PTKIT_EVENT_FULL);
}

/* At HIGH_LEVEL. What takes longer is the DPC's. Processors that came later are not traced. */
static void handle_interrupt(void)
{
	uint32_t cpu = ptkit_machine.cpu_here();
	struct ptkit_trace *trace = cpu < ptkit_machine.cpu_count() ? units[cpu].loaded : NULL;

	if (!trace)
		return;
	if (pt_unit_interrupts(&units[cpu].pt, &trace->pt))
		switch_buffer(trace);
	else if (re_arm)
		ptkit_machine.arm_interrupt();
}

void ptkit_run(struct ptkit_trace *trace)
{
	struct unit *unit = unit_here();

	unit->loaded = trace;
	if (pt_unit_prepare(&unit->pt, &trace->pt))
		start(trace);
	if (!trace->pt.running)
		unit->loaded = NULL;
}

void ptkit_halt(struct ptkit_trace *trace)
{
	const struct pt_unit *unit = &unit_here()->pt;

	stop(trace, false);
	leave(trace);
	/* An interrupt that is not delivered yet finds no trace. */
	if (trace->pt.wakes_up && pt_unit_interrupts(unit, &trace->pt))
		pt_unit_acknowledge(unit, &trace->pt);
	report_data(trace, true);
}

/*
 * With wake-ups the buffer is always switched: then a swallowed interrupt costs no packets, and a
 * machine where the interrupt comes once only needs none.
 */
static bool needs_service(const struct ptkit_trace *trace)
{
	const struct pt_unit *unit = &unit_here()->pt;
	const struct pt_bts *bts = trace->pt.bts;

	if (bts)
		return pt_branches_interrupt(bts) ||
		       (trace->pt.wakes_up && !pt_branches_are_none(bts));
	return trace->pt.wakes_up || pt_unit_has_stopped(unit, &trace->pt) ||
	       pt_unit_is_cleared(unit, &trace->pt);
}

void ptkit_serve(struct ptkit_trace *trace)
{
	if (trace->pt.running && needs_service(trace))
		switch_buffer(trace);
}

bool ptkit_is_live(struct ptkit_trace *trace)
{
	return pt_unit_is_live(&unit_here()->pt, &trace->pt);
}

void ptkit_forget(const struct ptkit_trace *trace)
{
	if (unit_here()->loaded == trace)
		unit_here()->loaded = NULL;
}

bool ptkit_has_interrupts(void)
{
	return have_interrupts;
}

bool ptkit_re_arms(void)
{
	return re_arm;
}

bool ptkit_running_init(void)
{
	uint32_t cpu;

	units = ptkit_allocate(ptkit_machine.cpu_count() * sizeof(*units));
	if (!units)
		return false;
	for (cpu = 0; cpu < ptkit_machine.cpu_count(); cpu++) {
		units[cpu].pt.ops = &ptkit_machine.ops;
		units[cpu].pt.ticks = ptkit_machine.ticks;
	}
	have_interrupts = NT_SUCCESS(ptkit_machine.take_interrupts(handle_interrupt));
	re_arm = have_interrupts && ptkit_machine.can_arm();
	return true;
}

void ptkit_running_exit(void)
{
	if (have_interrupts)
		ptkit_machine.release_interrupts();
	ptkit_free(units);
}
