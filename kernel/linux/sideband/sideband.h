/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Sideband: records of context switches, page tables, threads that begin and end, and modules. */
#ifndef PTKIT_LINUX_SIDEBAND_H
#define PTKIT_LINUX_SIDEBAND_H

#include <linux/list.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "sideband/ring.h"

struct ptkit_follow;

/* The sideband of a session. All members are zero at first. */
struct ptkit_sideband {
	struct list_head started; /* in the list of started sidebands */
	struct pid_namespace *ns; /* numbers the threads of records */
	const struct ptkit_follow *follow; /* null: records of all threads */
	struct ptkit_ring *rings; /* null: the session has no sideband */
	unsigned int count;
	struct ptkit_ring **of_cpu; /* null: no ring of that processor; of a thread: all the same */
};

int ptkit_sideband_init(void);
void ptkit_sideband_exit(void);

/* Allocates a ring for each of the processors, or for the one thread that is followed. */
int ptkit_sideband_make(struct ptkit_sideband *sideband, const struct ptkit_follow *follow,
			const struct cpumask *cpus, u64 bytes, wait_queue_head_t *wait);
void ptkit_sideband_free(struct ptkit_sideband *sideband);
/* Both do nothing without rings. ptkit_sideband_start() empties the rings. */
void ptkit_sideband_start(struct ptkit_sideband *sideband);
void ptkit_sideband_stop(struct ptkit_sideband *sideband);
/* Whether any sideband is started. */
bool ptkit_sideband_any(void);
/* Null: the processor has no ring. */
struct ptkit_ring *ptkit_sideband_ring(const struct ptkit_sideband *sideband, unsigned int cpu);

/* For probes (session/probes.c). The first one runs with preemption off. */
void ptkit_sideband_on_switch(const struct task_struct *from, const struct task_struct *to);
void ptkit_sideband_on_fork(const struct task_struct *child);
void ptkit_sideband_on_exec(const struct task_struct *task);
void ptkit_sideband_on_exit(const struct task_struct *task);

#endif /* PTKIT_LINUX_SIDEBAND_H */
