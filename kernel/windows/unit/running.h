/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Loads and unloads the registers of a trace, and handles its interrupts. */
#ifndef PTKIT_WINDOWS_RUNNING_H
#define PTKIT_WINDOWS_RUNNING_H

#include "unit/trace.h"

/* False: there is no memory. */
bool ptkit_running_init(void);
void ptkit_running_exit(void);
/* Whether the driver has the interrupt of performance monitoring, and whether it comes again. */
bool ptkit_has_interrupts(void);
bool ptkit_re_arms(void);

/* Called on the processor of the trace, with interrupts off. trace->pt.error has the result. */
void ptkit_run(struct ptkit_trace *trace);
void ptkit_halt(struct ptkit_trace *trace);
/* Does what an interrupt does: none may come, or another driver may have acknowledged it. */
void ptkit_serve(struct ptkit_trace *trace);
/* Whether the unit writes to the buffer, also where a hypervisor has restored registers. */
bool ptkit_is_live(struct ptkit_trace *trace);
/* From now on no interrupt of this processor is for the trace. */
void ptkit_forget(const struct ptkit_trace *trace);

#endif /* PTKIT_WINDOWS_RUNNING_H */
