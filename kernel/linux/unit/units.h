/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The trace units of all processors: which trace owns which unit. */
#ifndef PTKIT_LINUX_UNITS_H
#define PTKIT_LINUX_UNITS_H

#include <linux/sched.h>
#include <linux/types.h>

#include "common/pt_units.h"
#include "ptkit/ptkit_ioctl.h"
#include "unit/trace.h"

int ptkit_units_init(void);
void ptkit_units_exit(void);
/* Whether any processor belongs to a session. */
bool ptkit_units_any_owner(void);

/* For the functions of pt_units.h. */
extern const struct pt_units ptkit_units;

/* See pt_units_start(). Clears the buffers before. */
int ptkit_units_start(struct ptkit_trace *traces, unsigned int count, const struct pt_state *state);
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
