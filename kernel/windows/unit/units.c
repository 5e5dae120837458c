// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Which session traces on which processor, and what happens when the machine sleeps.
 *
 * A processor belongs to a session from start to stop. Lock order: a session's lock, `units_lock`.
 * An owner changes under the lock and is read under it, or by the timer on its processor. It is
 * also removed there.
 */
#include "unit/units.h"

#include "common/pt_unit.h"
#include "machine/machine.h"
#include "machine/pool.h"
#include "machine/reasons.h"
#include "unit/memory.h"
#include "unit/running.h"

#define TICK_MS 20 /* a swallowed interrupt is noticed after so long */

static KMUTEX units_lock;
static struct ptkit_trace **owners; /* by processor */
static bool asleep;
static bool abandoned;

static void lock_units(void)
{
	KeWaitForSingleObject(&units_lock, Executive, KernelMode, FALSE, NULL);
}

static void unlock_units(void)
{
	KeReleaseMutex(&units_lock, FALSE);
}

static void run_here(void *context)
{
	struct ptkit_trace *trace = context;

	if (trace->pt.wanted && !trace->pt.running && !trace->pt.error &&
	    (trace->pt.wakes_up || !trace->pt.full) && owners[trace->cpu] == trace)
		ptkit_run(trace);
}

static void halt_here(void *context)
{
	struct ptkit_trace *trace = context;

	if (trace->pt.running || ptkit_is_live(trace))
		ptkit_halt(trace);
}

static void serve_here(void *context)
{
	struct ptkit_trace *trace = context;

	if (owners[trace->cpu] == trace)
		ptkit_serve(trace);
}

static void disown_here(void *context)
{
	struct ptkit_trace *trace = context;

	ptkit_forget(trace);
	if (owners[trace->cpu] == trace)
		owners[trace->cpu] = NULL;
}

static uint32_t load(struct ptkit_trace *trace)
{
	if (!asleep)
		ptkit_machine.call(trace->cpu, run_here, trace);
	return ptkit_reason(trace->pt.error);
}

static void unload(struct ptkit_trace *trace)
{
	trace->pt.wanted = false;
	ptkit_machine.call(trace->cpu, halt_here, trace);
}

static VOID NTAPI tick(struct _KDPC *dpc, PVOID context, PVOID first, PVOID second)
{
	UNREFERENCED_PARAMETER(dpc);
	UNREFERENCED_PARAMETER(first);
	UNREFERENCED_PARAMETER(second);
	ptkit_machine.call_here(serve_here, context);
}

void ptkit_trace_init(struct ptkit_trace *trace, uint32_t cpu, struct ptkit_waiter *waiter)
{
	PROCESSOR_NUMBER place = ptkit_machine.cpu_place(cpu);

	trace->cpu = cpu;
	trace->waiter = waiter;
	KeInitializeDpc(&trace->tick, tick, trace);
	KeSetTargetProcessorDpcEx(&trace->tick, &place);
	KeInitializeTimerEx(&trace->timer, NotificationTimer);
}

void ptkit_trace_free(struct ptkit_trace *trace)
{
	if (trace->pt.running) {
		abandoned = true;
		pt_topa_silence(&trace->pt.memory.topa);
		return;
	}
	ptkit_memory_free(trace);
	ptkit_free(trace->pt.bts);
}

static void start_timer(struct ptkit_trace *trace)
{
	LARGE_INTEGER due = {.QuadPart = -TICK_MS * 10000LL};

	KeSetTimerEx(&trace->timer, due, TICK_MS, &trace->tick);
}

static uint32_t acquire(struct ptkit_trace *trace, const struct pt_state *state)
{
	if (owners[trace->cpu])
		return PTKIT_REASON_SESSION;
	owners[trace->cpu] = trace;
	trace->pt.started = true;
	trace->pt.state = *state;
	trace->pt.error = pt_unit_reset(&trace->pt);
	if (trace->pt.error)
		return ptkit_reason(trace->pt.error);
	trace->reported = 0;
	trace->pt.wanted = true;
	start_timer(trace);
	return load(trace);
}

static uint32_t release(struct ptkit_trace *trace)
{
	unload(trace);
	if (trace->pt.running)
		return PTKIT_REASON_FAULT;
	KeCancelTimer(&trace->timer);
	ptkit_machine.call(trace->cpu, disown_here, trace);
	trace->pt.started = false;
	return PTKIT_REASON_NONE;
}

/* Stops all started traces; returns the first error. One that cannot be stopped stays started. */
static uint32_t release_all(struct ptkit_trace *traces, uint32_t count)
{
	uint32_t reason = PTKIT_REASON_NONE;
	uint32_t i;

	for (i = 0; i < count; i++) {
		uint32_t failed = traces[i].pt.started ? release(&traces[i]) : PTKIT_REASON_NONE;

		reason = reason ? reason : failed;
	}
	KeFlushQueuedDpcs();
	return reason;
}

uint32_t ptkit_units_start(struct ptkit_trace *traces, uint32_t count, const struct pt_state *state,
			   uint32_t *failed)
{
	uint32_t reason = PTKIT_REASON_NONE;
	uint32_t i;

	/* This may take long: other sessions have to go on. */
	for (i = 0; i < count; i++)
		ptkit_memory_clear(&traces[i]);
	lock_units();
	for (i = 0; i < count && !reason; i++) {
		reason = acquire(&traces[i], state);
		*failed = traces[i].cpu;
	}
	if (reason)
		release_all(traces, count);
	unlock_units();
	return reason;
}

uint32_t ptkit_units_stop(struct ptkit_trace *traces, uint32_t count)
{
	uint32_t reason;

	lock_units();
	reason = release_all(traces, count);
	unlock_units();
	return reason;
}

uint32_t ptkit_units_pause(struct ptkit_trace *traces, uint32_t count)
{
	uint32_t reason = PTKIT_REASON_NONE;
	uint32_t i;

	lock_units();
	for (i = 0; i < count; i++) {
		unload(&traces[i]);
		reason = reason ? reason : ptkit_reason(traces[i].pt.error);
	}
	unlock_units();
	return reason;
}

static uint32_t go_on(struct ptkit_trace *trace, bool restart)
{
	if (restart && trace->pt.wanted)
		unload(trace);
	if (restart && !trace->pt.running) {
		trace->pt.state.status = pt_status_restarted(trace->pt.state.status);
		trace->pt.error = 0;
	}
	trace->pt.wanted = true;
	return load(trace);
}

uint32_t ptkit_units_resume(struct ptkit_trace *traces, uint32_t count, bool restart)
{
	uint32_t reason = PTKIT_REASON_NONE;
	uint32_t i;

	lock_units();
	for (i = 0; i < count; i++) {
		uint32_t failed = go_on(&traces[i], restart);

		reason = reason ? reason : failed;
	}
	unlock_units();
	return reason;
}

uint32_t ptkit_units_consume(struct ptkit_trace *trace, uint64_t tail)
{
	uint32_t reason;

	lock_units();
	reason = ptkit_reason(pt_trace_consume(&trace->pt, tail));
	/* A trace that runs reads the tail at the next interrupt or tick. */
	if (!reason && trace->pt.wanted && !trace->pt.error)
		reason = load(trace);
	unlock_units();
	return reason;
}

struct status_request {
	const struct ptkit_trace *trace;
	struct ptkit_status *status;
};

static void read_status_here(void *context)
{
	struct status_request *request = context;

	pt_trace_status(&request->trace->pt, request->status);
	request->status->error = (int32_t)ptkit_reason(request->trace->pt.error);
}

void ptkit_units_status(struct ptkit_trace *trace, struct ptkit_status *status)
{
	struct status_request request = {trace, status};

	lock_units();
	ptkit_machine.call(trace->cpu, read_status_here, &request);
	unlock_units();
}

void ptkit_units_give_up(struct ptkit_trace *traces, uint32_t count)
{
	uint32_t i;

	lock_units();
	release_all(traces, count);
	for (i = 0; i < count; i++) {
		if (!traces[i].pt.started)
			continue;
		DbgPrint("ptkit: CPU %u cannot be stopped: its buffer stays\n", traces[i].cpu);
		KeCancelTimer(&traces[i].timer);
		ptkit_machine.call(traces[i].cpu, disown_here, &traces[i]);
		traces[i].pt.started = false;
	}
	KeFlushQueuedDpcs();
	unlock_units();
}

void ptkit_units_sleep(void)
{
	uint32_t cpu;

	lock_units();
	asleep = true;
	for (cpu = 0; cpu < ptkit_machine.cpu_count(); cpu++) {
		if (owners[cpu])
			ptkit_machine.call(cpu, halt_here, owners[cpu]);
	}
	unlock_units();
}

void ptkit_units_wake_up(void)
{
	uint32_t cpu;

	lock_units();
	asleep = false;
	for (cpu = 0; cpu < ptkit_machine.cpu_count(); cpu++) {
		if (owners[cpu])
			load(owners[cpu]);
	}
	unlock_units();
}

bool ptkit_units_abandoned(void)
{
	return abandoned;
}

bool ptkit_units_init(void)
{
	KeInitializeMutex(&units_lock, 0);
	owners = ptkit_allocate(ptkit_machine.cpu_count() * sizeof(*owners));
	if (owners && ptkit_running_init())
		return true;
	ptkit_free(owners);
	return false;
}

void ptkit_units_exit(void)
{
	ptkit_running_exit();
	ptkit_free(owners);
}
