// SPDX-License-Identifier: MIT
#include "pt_units.h"

#include "pt_ops.h"
#include "pt_unit.h"

static struct pt_trace *trace_at(const struct pt_units *units, const struct pt_trace *traces,
				 uint32_t i)
{
	return (struct pt_trace *)((uintptr_t)traces + i * units->stride);
}

typedef int step_fn(const struct pt_units *units, struct pt_trace *trace);

/* Takes a step with all traces, also after an error. Returns the first error. */
static int for_each(const struct pt_units *units, struct pt_trace *traces, uint32_t count,
		    step_fn *step)
{
	uint32_t i;
	int error = 0;

	for (i = 0; i < count; i++) {
		int failed = step(units, trace_at(units, traces, i));

		error = error ? error : failed;
	}
	return error;
}

static int for_each_locked(const struct pt_units *units, struct pt_trace *traces, uint32_t count,
			   step_fn *step)
{
	int error;

	units->lock();
	error = for_each(units, traces, count, step);
	units->unlock();
	return error;
}

static int load(const struct pt_units *units, struct pt_trace *trace)
{
	/* A context switch that sees it sees the other members, too. */
	PT_STORE_RELEASE(trace->wanted, true);
	units->load(trace);
	return trace->error;
}

static int unload(const struct pt_units *units, struct pt_trace *trace)
{
	PT_WRITE_ONCE(trace->wanted, false);
	units->unload(trace);
	return trace->error;
}

static int acquire(const struct pt_units *units, struct pt_trace *trace,
		   const struct pt_state *state)
{
	int error = units->own(trace);

	if (error)
		return error;
	trace->started = true;
	trace->state = *state;
	trace->error = pt_unit_reset(trace);
	return trace->error ? trace->error : load(units, trace);
}

static int disown(const struct pt_units *units, struct pt_trace *trace)
{
	if (trace->started)
		units->disown(trace);
	trace->started = false;
	return 0;
}

/* A trace that cannot be stopped stays started. */
static int release(const struct pt_units *units, struct pt_trace *trace)
{
	if (!trace->started)
		return 0;
	unload(units, trace);
	return trace->running ? PT_E_FAULT : disown(units, trace);
}

static int restart(const struct pt_units *units, struct pt_trace *trace)
{
	/* Stops a shared trace before its state is changed: others may start it meanwhile. */
	if (trace->wanted && (!units->is_shared || units->is_shared(trace)))
		unload(units, trace);
	if (!trace->running) {
		trace->state.status = pt_status_restarted(trace->state.status);
		trace->error = 0;
	}
	return load(units, trace);
}

int pt_units_start(const struct pt_units *units, struct pt_trace *traces, uint32_t count,
		   const struct pt_state *state, uint32_t *tried)
{
	uint32_t i;
	int error = 0;

	units->lock();
	for (i = 0; i < count && !error; i++)
		error = acquire(units, trace_at(units, traces, i), state);
	if (tried)
		*tried = i;
	if (error)
		for_each(units, traces, count, release);
	units->unlock();
	return error;
}

int pt_units_stop(const struct pt_units *units, struct pt_trace *traces, uint32_t count)
{
	return for_each_locked(units, traces, count, release);
}

void pt_units_give_up(const struct pt_units *units, struct pt_trace *traces, uint32_t count)
{
	for_each_locked(units, traces, count, release);
	for_each_locked(units, traces, count, disown);
}

bool pt_units_any_started(const struct pt_units *units, const struct pt_trace *traces,
			  uint32_t count)
{
	uint32_t i;

	for (i = 0; i < count; i++) {
		if (trace_at(units, traces, i)->started)
			return true;
	}
	return false;
}

int pt_units_pause(const struct pt_units *units, struct pt_trace *traces, uint32_t count)
{
	return for_each_locked(units, traces, count, unload);
}

int pt_units_resume(const struct pt_units *units, struct pt_trace *traces, uint32_t count,
		    bool restarts)
{
	return for_each_locked(units, traces, count, restarts ? restart : load);
}

int pt_units_consume(const struct pt_units *units, struct pt_trace *trace, uint64_t tail)
{
	int error;

	units->lock();
	error = pt_trace_consume(trace, tail);
	/* A trace that runs reads the tail when it is served next. */
	if (!error && trace->wanted && !trace->error)
		error = load(units, trace);
	units->unlock();
	return error;
}
