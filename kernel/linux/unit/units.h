/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The trace units of all processors: which trace owns which unit. */
#ifndef PTKIT_LINUX_UNITS_H
#define PTKIT_LINUX_UNITS_H

#include <linux/sched.h>
#include <linux/types.h>

#include "common/pt_sequence.h"
#include "ptkit/ptkit_ioctl.h"
#include "unit/trace.h"

int ptkit_units_init(void);
void ptkit_units_exit(void);
/* Whether any processor belongs to a session. */
bool ptkit_units_any_owner(void);

/*
 * Start and stop the traces of a session; both return the first error. `state` is that of the
 * session, without output. No trace may be started before ptkit_units_start(). After it failed, and
 * after ptkit_units_stop(), only the traces that could not be stopped are still started.
 */
int ptkit_units_start(struct ptkit_trace *traces, unsigned int count, const struct pt_state *state);
int ptkit_units_stop(struct ptkit_trace *traces, unsigned int count);
bool ptkit_units_any_started(const struct ptkit_trace *traces, unsigned int count);
/*
 * All of the traces are started. With `restart`, traces that a TraceStop range or an error ended
 * are started, too.
 */
int ptkit_units_pause(struct ptkit_trace *traces, unsigned int count);
int ptkit_units_resume(struct ptkit_trace *traces, unsigned int count, bool restart);
/* Stops. No trace is started afterwards; one that could not be stopped still runs. */
void ptkit_units_give_up(struct ptkit_trace *traces, unsigned int count);
int ptkit_units_consume(struct ptkit_trace *trace, u64 tail);
void ptkit_units_status(struct ptkit_trace *trace, struct ptkit_status *status);

/* Stops all traces for good: another kernel gets the memory. */
void ptkit_units_shut_down(void);

/*
 * Called on this processor, with interrupts off. ptkit_unit_owner() returns the trace that owns the
 * trace unit, or null. ptkit_unit_enter() starts tracing if `task`, which runs now, is to be
 * traced. ptkit_unit_leave() stops it, as the traced task no longer runs.
 */
struct ptkit_trace *ptkit_unit_owner(void);
void ptkit_unit_enter(struct ptkit_trace *trace, struct task_struct *task);
void ptkit_unit_leave(struct ptkit_trace *trace);

#endif /* PTKIT_LINUX_UNITS_H */
