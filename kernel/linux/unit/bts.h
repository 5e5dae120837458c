/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Branch Trace Store: what Linux adds to kernel/common. */
#ifndef PTKIT_LINUX_BTS_H
#define PTKIT_LINUX_BTS_H

#include <linux/sched.h>

#include "ptkit/ptkit_ioctl.h"
#include "unit/trace.h"

int ptkit_bts_make(struct ptkit_trace *trace, const struct ptkit_config *config);
void ptkit_bts_free(struct ptkit_trace *trace);
/* The DS area is never freed: a processor may still use it. */
void ptkit_bts_abandon(const struct ptkit_trace *trace);
/* The thread that marks name: it runs now, on the processor of the trace. */
void ptkit_bts_set_thread(struct ptkit_trace *trace, struct task_struct *task);

#endif /* PTKIT_LINUX_BTS_H */
