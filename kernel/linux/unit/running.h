/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Loads and unloads the registers of a trace, and handles its interrupts. */
#ifndef PTKIT_LINUX_RUNNING_H
#define PTKIT_LINUX_RUNNING_H

#include "unit/trace.h"

int ptkit_interrupts_init(void);
void ptkit_interrupts_exit(void);

void ptkit_trace_init(struct ptkit_trace *trace, unsigned int number, struct ptkit_follow *follow);
/* Frees the buffer. A buffer that a processor may still write to is abandoned. */
void ptkit_trace_free(struct ptkit_trace *trace);

/* Called on the processor of the trace, with interrupts off. trace->pt.error has the result. */
void ptkit_run(struct ptkit_trace *trace);
void ptkit_halt(struct ptkit_trace *trace);
/* Serves an interrupt that did not come: another handler may have acknowledged it. */
void ptkit_serve(struct ptkit_trace *trace);
/* Whether the unit writes to the buffer, also where KVM has restored what it saved. */
bool ptkit_is_live(struct ptkit_trace *trace);
/* From now on no interrupt of this processor is for the trace. */
void ptkit_forget(const struct ptkit_trace *trace);

#endif /* PTKIT_LINUX_RUNNING_H */
