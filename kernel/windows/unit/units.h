/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The trace units of all processors: which trace owns which unit. */
#ifndef PTKIT_WINDOWS_UNITS_H
#define PTKIT_WINDOWS_UNITS_H

#include "unit/trace.h"

/* False: there is no memory. */
bool ptkit_units_init(void);
void ptkit_units_exit(void);

void ptkit_trace_init(struct ptkit_trace *trace, uint32_t cpu, struct ptkit_waiter *waiter);
/* Frees the buffer. A buffer that a processor may still write to is never freed. */
void ptkit_trace_free(struct ptkit_trace *trace);

/*
 * All are for PASSIVE_LEVEL, and return a PTKIT_REASON_*. ptkit_units_start() sets `failed` to the
 * processor concerned; `state` is that of the session, without output. After it was refused, and
 * after ptkit_units_stop(), only the traces that could not be stopped are still started.
 */
uint32_t ptkit_units_start(struct ptkit_trace *traces, uint32_t count, const struct pt_state *state,
			   uint32_t *failed);
uint32_t ptkit_units_stop(struct ptkit_trace *traces, uint32_t count);
uint32_t ptkit_units_pause(struct ptkit_trace *traces, uint32_t count);
/* With `restart`, traces that a TraceStop range or an error ended are started, too. */
uint32_t ptkit_units_resume(struct ptkit_trace *traces, uint32_t count, bool restart);
/* Stops. No trace is started afterwards; one that could not be stopped keeps its buffer for ever.
 */
void ptkit_units_give_up(struct ptkit_trace *traces, uint32_t count);
uint32_t ptkit_units_consume(struct ptkit_trace *trace, uint64_t tail);
void ptkit_units_status(struct ptkit_trace *trace, struct ptkit_status *status);

/* Around sleep: all traces are stopped, and go on later. Without going on: the machine shuts down.
 */
void ptkit_units_sleep(void);
void ptkit_units_wake_up(void);

/* Whether a buffer had to be abandoned: a processor may still interrupt for it. */
bool ptkit_units_abandoned(void);

#endif /* PTKIT_WINDOWS_UNITS_H */
