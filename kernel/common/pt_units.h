/* SPDX-License-Identifier: MIT */
/*
 * The life of the traces of a session. A trace owns the trace unit of its processor, or Branch
 * Trace Store, from start to stop. Between them it is paused and resumed, and waits for the reader.
 * The driver calls the processors, and decides whether a trace may run at the moment.
 */
#ifndef PTKIT_COMMON_PT_UNITS_H
#define PTKIT_COMMON_PT_UNITS_H

#include "pt_trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The driver's part. All but lock() are called with the lock. */
struct pt_units {
	size_t stride; /* bytes from a trace of a session to the next one */
	void (*lock)(void);
	void (*unlock)(void);
	/* Takes the unit for the trace. PT_E_OWNED: it belongs to another session. */
	int (*own)(struct pt_trace *trace);
	void (*disown)(struct pt_trace *trace);
	/* Runs the trace if it may run at the moment. trace->error has the result. */
	void (*load)(struct pt_trace *trace);
	/* Halts the trace. trace->running: the unit could not be stopped. */
	void (*unload)(struct pt_trace *trace);
	/* Whether others call pt_unit_start() and pt_unit_stop() meanwhile; null: always. */
	bool (*is_shared)(const struct pt_trace *trace);
};

/*
 * All functions return the first error; `traces` is the first of the session's traces.
 *
 * Starts traces, none of which is started. `state` is that of the session, without output.
 * `tried`, unless null, is the number of traces up to the one that was refused. Afterwards, and
 * after pt_units_stop(), only traces that could not be stopped are still started.
 */
int pt_units_start(const struct pt_units *units, struct pt_trace *traces, uint32_t count,
		   const struct pt_state *state, uint32_t *tried);
int pt_units_stop(const struct pt_units *units, struct pt_trace *traces, uint32_t count);
/* Stops. No trace is started afterwards; trace->running: the unit could not be stopped. */
void pt_units_give_up(const struct pt_units *units, struct pt_trace *traces, uint32_t count);
bool pt_units_any_started(const struct pt_units *units, const struct pt_trace *traces,
			  uint32_t count);

/*
 * All of the traces are started. With `restarts`, traces that a TraceStop range or an error ended
 * run again, too.
 */
int pt_units_pause(const struct pt_units *units, struct pt_trace *traces, uint32_t count);
int pt_units_resume(const struct pt_units *units, struct pt_trace *traces, uint32_t count,
		    bool restarts);
/* See pt_trace_consume(). A trace that waited for free space runs again. */
int pt_units_consume(const struct pt_units *units, struct pt_trace *trace, uint64_t tail);

#ifdef __cplusplus
}
#endif

#endif /* PTKIT_COMMON_PT_UNITS_H */
