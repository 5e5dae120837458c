// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Which session traces on which processor, and what happens when the machine sleeps.
 *
 * A processor belongs to a session from start to stop. Lock order: a session's lock, `units_lock`.
 * An owner changes under the lock and is read under it, or by the timer on its processor. It is
 * also removed there.
 */
#include "unit/units.h"

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

static struct ptkit_trace *trace_of(struct pt_trace *pt)
{
	return CONTAINING_RECORD(pt, struct ptkit_trace, pt);
}

static void load(struct pt_trace *pt)
{
	if (!asleep)
		ptkit_machine.call(trace_of(pt)->cpu, run_here, trace_of(pt));
}

static void unload(struct pt_trace *pt)
{
	ptkit_machine.call(trace_of(pt)->cpu, halt_here, trace_of(pt));
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
	PROCESSOR_NUMBER number = ptkit_machine.cpu_number(cpu);

	trace->cpu = cpu;
	trace->waiter = waiter;
	KeInitializeDpc(&trace->tick, tick, trace);
	KeSetTargetProcessorDpcEx(&trace->tick, &number);
	KeInitializeTimerEx(&trace->timer, NotificationTimer);
}

void ptkit_trace_free(struct ptkit_trace *trace)
{
	if (trace->pt.running) {
		DbgPrint("ptkit: CPU %u cannot be stopped: its buffer stays\n", trace->cpu);
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

static int own(struct pt_trace *pt)
{
	struct ptkit_trace *trace = trace_of(pt);

	if (owners[trace->cpu])
		return PT_E_OWNED;
	owners[trace->cpu] = trace;
	trace->reported = 0;
	start_timer(trace);
	return 0;
}

static void disown(struct pt_trace *pt)
{
	struct ptkit_trace *trace = trace_of(pt);

	KeCancelTimer(&trace->timer);
	ptkit_machine.call(trace->cpu, disown_here, trace);
}

const struct pt_units ptkit_units = {
	.stride = sizeof(struct ptkit_trace),
	.lock = lock_units,
	.unlock = unlock_units,
	.own = own,
	.disown = disown,
	.load = load,
	.unload = unload,
};

uint32_t ptkit_units_start(struct ptkit_trace *traces, uint32_t count, const struct pt_state *state,
			   uint32_t *failed)
{
	uint32_t tried;
	uint32_t i;
	int error;

	/* This may take long: other sessions have to go on. */
	for (i = 0; i < count; i++)
		ptkit_memory_clear(&traces[i]);
	error = pt_units_start(&ptkit_units, &traces->pt, count, state, &tried);
	*failed = traces[tried - 1].cpu;
	return ptkit_reason(error);
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
			load(&owners[cpu]->pt);
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
