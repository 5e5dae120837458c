/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The trace units of all processors: which trace owns which unit. */
#ifndef PTKIT_WINDOWS_UNITS_H
#define PTKIT_WINDOWS_UNITS_H

#include "common/pt_units.h"
#include "unit/trace.h"

/* False: there is no memory. */
bool ptkit_units_init(void);
void ptkit_units_exit(void);

void ptkit_trace_init(struct ptkit_trace *trace, uint32_t cpu, struct ptkit_waiter *waiter);
/* Frees the buffer. A buffer that a processor may still write to is never freed. */
void ptkit_trace_free(struct ptkit_trace *trace);

/* For the functions of pt_units.h, at PASSIVE_LEVEL. */
extern const struct pt_units ptkit_units;

/*
 * See pt_units_start(). Clears the buffers before. Returns a PTKIT_REASON_*; `failed` is the
 * processor concerned.
 */
uint32_t ptkit_units_start(struct ptkit_trace *traces, uint32_t count, const struct pt_state *state,
			   uint32_t *failed);
void ptkit_units_status(struct ptkit_trace *trace, struct ptkit_status *status);

/* Around sleep: all traces are stopped, and go on later. Without going on: the machine shuts down.
 */
void ptkit_units_sleep(void);
void ptkit_units_wake_up(void);

/* Whether a buffer had to be abandoned: a processor may still interrupt for it. */
bool ptkit_units_abandoned(void);

#endif /* PTKIT_WINDOWS_UNITS_H */
