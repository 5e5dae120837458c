/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Context switches, fork(), exec() and exit of the tasks that sessions follow. */
#ifndef PTKIT_LINUX_TASKS_H
#define PTKIT_LINUX_TASKS_H

#include <linux/types.h>

#include "follow/follow.h"
#include "unit/trace.h"

void ptkit_tasks_init(void);
/* Whether the kernel has the tracepoints that following a process or thread takes. */
bool ptkit_tasks_available(void);

/*
 * Around tracing: ptkit_tasks_begin() puts `follow` on the list that the probes go through, unless
 * it fails; ptkit_tasks_end() takes it off. `roaming` is the trace that goes with a thread, or
 * null.
 */
int ptkit_tasks_begin(struct ptkit_follow *follow, struct ptkit_trace *roaming);
void ptkit_tasks_end(struct ptkit_follow *follow);
/* Around Branch Trace Store: marks at context switches and at exec(). */
int ptkit_tasks_begin_branches(void);
void ptkit_tasks_end_branches(void);
/* Whether any session is on the list. */
bool ptkit_tasks_any(void);

#endif /* PTKIT_LINUX_TASKS_H */
