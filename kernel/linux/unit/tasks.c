// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Probes of the scheduler's tracepoints. At a context switch they start and stop tracing: a traced
 * interval begins and ends inside of the kernel's context switch. At fork(), exec() and the end of
 * a process they record which tasks are followed (follow.c).
 */
#include <linux/preempt.h>
#include <linux/rculist.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/smp.h>
#include <linux/spinlock.h>

#include <trace/events/sched.h>

#include "follow/events.h"
#include "follow/follow.h"
#include "unit/tasks.h"
#include "unit/units.h"

static LIST_HEAD(begun); /* of ptkit_follow; read with preemption off */
static DEFINE_RAW_SPINLOCK(begun_lock); /* for writers */
static bool available;

static void on_switch(void *data, bool preempt, struct task_struct *prev, struct task_struct *next,
		      unsigned int prev_state)
{
	struct ptkit_trace *owner = ptkit_unit_owner();
	const struct ptkit_follow *follow;

	if (owner && (owner->follow || owner->bts)) {
		if (owner->bts || !ptkit_follow_allows(owner->follow, next))
			ptkit_unit_leave(owner);
		ptkit_unit_enter(owner, next);
	}
	list_for_each_entry_rcu(follow, &begun, node) {
		if (follow->roaming && follow->task == next)
			ptkit_unit_enter(follow->roaming, next);
	}
}

static void on_fork(void *data, struct task_struct *parent, struct task_struct *child)
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

	if (!trace || trace->follow != follow || !trace->running)
		return;
	ptkit_unit_leave(trace);
	ptkit_unit_enter(trace, current);
}

/* A mark lies between the branches of two programs. */
static void mark_here(void *task)
{
	struct ptkit_trace *owner = ptkit_unit_owner();

	if (!owner || !owner->bts || !owner->running)
		return;
	ptkit_unit_leave(owner);
	ptkit_unit_enter(owner, task);
}

/* After exec() the process has one thread, `task`, which has not left the kernel yet. */
static void on_exec(void *data, struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)
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
static void on_free(void *data, struct task_struct *task)
{
	struct ptkit_follow *follow;

	if (READ_ONCE(task->signal->nr_threads))
		return;
	preempt_disable();
	list_for_each_entry_rcu(follow, &begun, node)
		ptkit_follow_remove_child(follow, task);
	preempt_enable();
}

enum { SWITCH, FORK, EXEC, FREE };

static struct ptkit_event probes[] = {
	[SWITCH] = { .name = "sched_switch", .probe = on_switch },
	[FORK] = { .name = "sched_process_fork", .probe = on_fork },
	[EXEC] = { .name = "sched_process_exec", .probe = on_exec },
	[FREE] = { .name = "sched_process_free", .probe = on_free },
};

/* A child is followed before the sideband asks whether it is. */
static const struct ptkit_events events = {
	.events = probes,
	.count = ARRAY_SIZE(probes),
	.priority = TRACEPOINT_DEFAULT_PRIO,
};

/* The compiler compares the types of the probes with those of the tracepoints. */
static __maybe_unused void check_types(void)
{
	check_trace_callback_type_sched_switch(on_switch);
	check_trace_callback_type_sched_process_fork(on_fork);
	check_trace_callback_type_sched_process_exec(on_exec);
	check_trace_callback_type_sched_process_free(on_free);
}

static unsigned int events_of(const struct ptkit_follow *follow)
{
	unsigned int wanted = BIT(follow->switches ? SWITCH : EXEC);

	if (follow->with_children)
		wanted |= BIT(FORK) | BIT(FREE);
	return wanted;
}

#define BRANCH_EVENTS (BIT(SWITCH) | BIT(EXEC))

int ptkit_tasks_begin_branches(void)
{
	return ptkit_events_begin(&events, BRANCH_EVENTS);
}

void ptkit_tasks_end_branches(void)
{
	ptkit_events_end(&events, BRANCH_EVENTS);
}

void ptkit_tasks_init(void)
{
	available = ptkit_events_find(&events);
}

bool ptkit_tasks_available(void)
{
	return available;
}

int ptkit_tasks_begin(struct ptkit_follow *follow, struct ptkit_trace *roaming)
{
	unsigned long flags;
	int error = ptkit_events_begin(&events, events_of(follow));

	if (error)
		return error;
	follow->error = 0;
	follow->roaming = roaming;
	raw_spin_lock_irqsave(&begun_lock, flags);
	list_add_tail_rcu(&follow->node, &begun);
	raw_spin_unlock_irqrestore(&begun_lock, flags);
	return 0;
}

void ptkit_tasks_end(struct ptkit_follow *follow)
{
	unsigned long flags;

	raw_spin_lock_irqsave(&begun_lock, flags);
	list_del_rcu(&follow->node);
	raw_spin_unlock_irqrestore(&begun_lock, flags);
	/* Afterwards no probe reads `follow` any longer. */
	ptkit_events_end(&events, events_of(follow));
	ptkit_follow_forget(follow);
}

bool ptkit_tasks_any(void)
{
	return !list_empty(&begun);
}
