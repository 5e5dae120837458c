/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Context switches, fork(), exec() and exit of the tasks that sessions follow. */
#ifndef PTKIT_LINUX_TASKS_H
#define PTKIT_LINUX_TASKS_H

#include <linux/types.h>

#include "follow/follow.h"
#include "unit/trace.h"

/* The list that probes go through. `roaming`: the trace that goes with a thread, or null. */
void ptkit_tasks_begin(struct ptkit_follow *follow, struct ptkit_trace *roaming);
/* A probe that runs may read `follow` still. */
void ptkit_tasks_end(struct ptkit_follow *follow);
/* Whether any session is on the list. */
bool ptkit_tasks_any(void);

/* For probes (session/probes.c). The first one runs with preemption off. */
void ptkit_tasks_on_switch(struct task_struct *next);
void ptkit_tasks_on_fork(struct task_struct *parent, struct task_struct *child);
void ptkit_tasks_on_exec(struct task_struct *task);
void ptkit_tasks_on_free(struct task_struct *task);

#endif /* PTKIT_LINUX_TASKS_H */
