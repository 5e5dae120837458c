// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * At a context switch tracing starts and stops: a traced interval begins and ends inside of the
 * kernel's context switch. At fork(), exec() and the end of a process it is noted which tasks are
 * followed (follow.c).
 */
#include <linux/preempt.h>
#include <linux/rculist.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

#include "follow/follow.h"
#include "unit/tasks.h"
#include "unit/units.h"

static LIST_HEAD(begun); /* of ptkit_follow; read with preemption off */
static DEFINE_RAW_SPINLOCK(begun_lock); /* for writers */

void ptkit_tasks_on_switch(struct task_struct *next)
{
	struct ptkit_trace *owner = ptkit_unit_owner();
	const struct ptkit_follow *follow;

	if (owner && (owner->follow || owner->pt.bts)) {
		if (owner->pt.bts || !ptkit_follow_allows(owner->follow, next))
			ptkit_unit_leave(owner);
		ptkit_unit_enter(owner, next);
	}
	list_for_each_entry_rcu(follow, &begun, node) {
		if (follow->roaming && follow->task == next)
			ptkit_unit_enter(follow->roaming, next);
	}
}

void ptkit_tasks_on_fork(struct task_struct *parent, struct task_struct *child)
{
	struct ptkit_follow *follow;

	if (parent->signal == child->signal)
		return;
	preempt_disable();
	list_for_each_entry_rcu(follow, &begun, node) {
		if (follow->with_children && ptkit_follows(follow, parent))
			ptkit_follow_add_child(follow, child);
	}
	preempt_enable();
}

/* Runs where CR3_MATCH still has the old page tables. */
static void renew_here(void *follow)
{
	struct ptkit_trace *trace = ptkit_unit_owner();

	if (!trace || trace->follow != follow || !trace->pt.running)
		return;
	ptkit_unit_leave(trace);
	ptkit_unit_enter(trace, current);
}

/* A mark lies between the branches of two programs. */
static void mark_here(void *task)
{
	struct ptkit_trace *owner = ptkit_unit_owner();

	if (!owner || !owner->pt.bts || !owner->pt.running)
		return;
	ptkit_unit_leave(owner);
	ptkit_unit_enter(owner, task);
}

/* After exec() the process has one thread, `task`, which has not left the kernel yet. */
void ptkit_tasks_on_exec(struct task_struct *task)
{
	struct ptkit_follow *follow;
	struct mm_struct *old;

	preempt_disable();
	smp_call_function_single(smp_processor_id(), mark_here, task, 1);
	list_for_each_entry_rcu(follow, &begun, node) {
		if (follow->switches || !ptkit_follows(follow, task))
			continue;
		old = ptkit_follow_set_mm(follow, task->mm);
		on_each_cpu(renew_here, follow, 1);
		if (old)
			mmdrop(old);
	}
	preempt_enable();
}

/* `task` never runs again. */
void ptkit_tasks_on_free(struct task_struct *task)
{
	struct ptkit_follow *follow;

	if (READ_ONCE(task->signal->nr_threads))
		return;
	preempt_disable();
	list_for_each_entry_rcu(follow, &begun, node)
		ptkit_follow_remove_child(follow, task);
	preempt_enable();
}

void ptkit_tasks_begin(struct ptkit_follow *follow, struct ptkit_trace *roaming)
{
	unsigned long flags;

	follow->error = 0;
	follow->roaming = roaming;
	raw_spin_lock_irqsave(&begun_lock, flags);
	list_add_tail_rcu(&follow->node, &begun);
	raw_spin_unlock_irqrestore(&begun_lock, flags);
}

void ptkit_tasks_end(struct ptkit_follow *follow)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&begun_lock, flags);
	list_del_rcu(&follow->node);
	raw_spin_unlock_irqrestore(&begun_lock, flags);
}

bool ptkit_tasks_any(void)
{
	return !list_empty(&begun);
}
