/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* What happens besides what is traced: records of threads, their memory, and modules. */
#ifndef PTKIT_LINUX_SIDEBAND_H
#define PTKIT_LINUX_SIDEBAND_H

#include <linux/list.h>
#include <linux/pid_namespace.h>
#include <linux/sched.h>

#include "ring.h"

struct ptkit_follow;

/* A session's, zero at first. */
struct ptkit_sideband {
	struct list_head started; /* among those that were */
	struct pid_namespace *ns; /* in which threads are numbered */
	const struct ptkit_follow *follow; /* whom it is about; null: all */
	struct ptkit_ring *rings; /* null: there is no sideband */
	unsigned int count;
	struct ptkit_ring **of_cpu; /* null where there is none */
	bool anywhere; /* one ring, of all processors, for one thread */
};

void ptkit_sideband_init(void);
void ptkit_sideband_exit(void);
/* Whether there can be one: the kernel has all that we listen to. */
bool ptkit_sideband_available(void);

/* A ring of `bytes` bytes for each of those processors; `follow` and `anywhere` are set. */
int ptkit_sideband_make(struct ptkit_sideband *sideband, const struct cpumask *cpus, u64 bytes,
			wait_queue_head_t *wait);
void ptkit_sideband_free(struct ptkit_sideband *sideband);
/* From now on, with empty rings; nothing if there is none. The second one only after the first. */
int ptkit_sideband_start(struct ptkit_sideband *sideband);
void ptkit_sideband_stop(struct ptkit_sideband *sideband);
/* Whether any is started. */
bool ptkit_sideband_any(void);
/* Null if there is none. */
struct ptkit_ring *ptkit_sideband_ring(const struct ptkit_sideband *sideband, unsigned int cpu);

/* Where the kernel's tracepoints are, on the processor where it happens; see events.c. */
void ptkit_sideband_switch(const struct task_struct *from, const struct task_struct *to);
void ptkit_sideband_fork(const struct task_struct *parent, const struct task_struct *child);
void ptkit_sideband_rename(const struct task_struct *task, const char *name);
void ptkit_sideband_exit_task(const struct task_struct *task);

#endif /* PTKIT_LINUX_SIDEBAND_H */
