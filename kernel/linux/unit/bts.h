/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Branch Trace Store. */
#ifndef PTKIT_LINUX_BTS_H
#define PTKIT_LINUX_BTS_H

#include <linux/sched.h>

#include "ptkit/ptkit_ioctl.h"
#include "unit/trace.h"

int ptkit_bts_make(struct ptkit_trace *trace, const struct ptkit_config *config);
void ptkit_bts_free(struct ptkit_trace *trace);
/* The DS area is never freed: a processor may still use it. */
void ptkit_bts_abandon(const struct ptkit_trace *trace);

/* The rest is called on the processor of the trace, with interrupts off. */
int ptkit_bts_reset(struct ptkit_trace *trace);
/* The thread that mark records name: it runs now. */
void ptkit_bts_set_thread(struct ptkit_trace *trace, struct task_struct *task);
/* Lays out the free part of the buffer. False: there is none, and trace->full is set. */
bool ptkit_bts_make_room(struct ptkit_trace *trace);
int ptkit_bts_start(struct ptkit_trace *trace);
int ptkit_bts_stop(struct ptkit_trace *trace);
/* Whether the buffer has reached the threshold of the interrupt. */
bool ptkit_bts_pends(const struct ptkit_trace *trace);

#endif /* PTKIT_LINUX_BTS_H */
