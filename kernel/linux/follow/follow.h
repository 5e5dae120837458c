/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Which tasks a session follows: those of one process, with its children or without, or one thread.
 */
#ifndef PTKIT_LINUX_FOLLOW_H
#define PTKIT_LINUX_FOLLOW_H

#include <linux/hashtable.h>
#include <linux/list.h>
#include <linux/mm_types.h>
#include <linux/sched.h>
#include <linux/spinlock_types.h>
#include <linux/types.h>

#include "ptkit/ptkit_ioctl.h"

#define PTKIT_CHILDREN_BITS 7

struct ptkit_trace;

struct ptkit_follow {
	struct task_struct *task; /* a reference: the thread, or a thread of the process */
	bool thread; /* only that thread; otherwise all threads of the process */
	bool with_children;
	/* Tracing is switched on and off at context switches, not by the CR3 filter. */
	bool switches;
	int error; /* errno: a child that is missing */
	/*
	 * Without `switches`: a reference to the owner of the page tables, so that no other process
	 * gets a page table at the same address.
	 */
	struct mm_struct *mm;
	bool user_table; /* under page-table isolation: the table of user code */
	raw_spinlock_t children_lock; /* for writers; readers have preemption off */
	DECLARE_HASHTABLE(children, PTKIT_CHILDREN_BITS);
	/* For tasks.c. */
	struct list_head node;
	struct ptkit_trace *roaming; /* the trace that goes with the thread, or null */
};

/* Whether tracing is switched on and off; otherwise the CR3 filter selects the process. */
bool ptkit_follow_switches(const struct ptkit_config *config);
/* Null: all tasks are followed. ERR_PTR(-ESRCH): there is no such process or thread. */
struct ptkit_follow *ptkit_follow_make(const struct ptkit_config *config);
void ptkit_follow_free(struct ptkit_follow *follow);

/* With preemption off: whether the session follows a task. */
bool ptkit_follows(const struct ptkit_follow *follow, const struct task_struct *task);
/* The same, but true for all tasks if the CR3 filter selects the process. */
bool ptkit_follow_allows(const struct ptkit_follow *follow, const struct task_struct *task);
/* CR3 of the process; 0 with `switches`. */
u64 ptkit_follow_cr3(const struct ptkit_follow *follow);
/* The owner of the page tables, with a reference for mmdrop(); null: the process has ended. */
struct mm_struct *ptkit_task_mm(const struct task_struct *task);
/* errno; `follow` may be null. */
int ptkit_follow_error(const struct ptkit_follow *follow);

/*
 * Looks the page tables up, and whether the process or thread has ended: -ESRCH. The probe of
 * exec() must be registered, so that no change of page tables is missed.
 */
int ptkit_follow_find(struct ptkit_follow *follow);
/* Forgets the children and the page tables. No probe uses `follow`. */
void ptkit_follow_forget(struct ptkit_follow *follow);

/* For probes of tracepoints, with preemption off. */
void ptkit_follow_add_child(struct ptkit_follow *follow, struct task_struct *child);
/* `task` is the last thread of its process. */
void ptkit_follow_remove_child(struct ptkit_follow *follow, const struct task_struct *task);
/* Returns the owner of the page tables before, or null; the caller drops the reference. */
struct mm_struct *ptkit_follow_set_mm(struct ptkit_follow *follow, struct mm_struct *mm);

#endif /* PTKIT_LINUX_FOLLOW_H */
