// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Following a process or a thread.
 *
 * Where the processor can filter by page tables, and these tell what is wanted, it does; exec()
 * gives a process new ones. Otherwise tracing is switched on and off where tasks are switched: what
 * is traced begins and ends inside of the kernel's function for that.
 *
 * A process is known by its signal_struct, which all of its threads share from fork() on, and keep
 * across exec(); nobody else gets it as long as a reference to one of the threads is held. A thread
 * is known by its task_struct. So numbers that are used again do not matter.
 */
#include <linux/err.h>
#include <linux/hashtable.h>
#include <linux/pid.h>
#include <linux/rculist.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include <asm/io.h>

#include "ptkit.h"
#include "ptkit/rtit_regs.h"

#define CHILDREN_BITS 7

/* A process that was begun by one that is followed. */
struct child {
	struct hlist_node node; /* in ptkit_follow.children, by task->signal */
	struct rcu_head rcu;
	struct task_struct *task; /* a reference: of the first thread */
};

struct ptkit_follow {
	struct list_head node; /* in `begun` */
	struct task_struct *task; /* a reference: the thread, or a thread of the process */
	bool thread; /* that one only; otherwise all of its process */
	bool switches;
	bool with_children;
	int error;
	struct ptkit_trace *roaming; /* of a thread */
	/* Without switches: a reference to what has the page tables, for nobody else to get. */
	struct mm_struct *mm;
	bool user_table;
	DECLARE_HASHTABLE(children, CHILDREN_BITS);
};

static LIST_HEAD(begun); /* read with preemption off */
static DEFINE_RAW_SPINLOCK(begun_lock); /* of whoever changes the list, or children */

#define EVENTS_OF_ALL                                                                              \
	(BIT(PTKIT_EVENT_SWITCH) | BIT(PTKIT_EVENT_FORK) | BIT(PTKIT_EVENT_EXEC) |                 \
	 BIT(PTKIT_EVENT_FREE))

bool ptkit_follow_possible(void)
{
	return ptkit_events_found(EVENTS_OF_ALL);
}

static unsigned int events_of(const struct ptkit_follow *follow)
{
	unsigned int events = BIT(follow->switches ? PTKIT_EVENT_SWITCH : PTKIT_EVENT_EXEC);

	if (follow->with_children)
		events |= BIT(PTKIT_EVENT_FORK) | BIT(PTKIT_EVENT_FREE);
	return events;
}

bool ptkit_follow_switches(const struct ptkit_caps *caps, const struct ptkit_config *config)
{
	const u64 both = PTKIT_TRACE_USER | PTKIT_TRACE_KERNEL;

	return (config->flags & PTKIT_TRACE_CHILDREN) || (config->flags & both) == both ||
	       !(caps->cpuid_14_0[1] & BIT(PT_CPUID_14_EBX_CR3_FILTER));
}

static struct child *find_child(const struct ptkit_follow *follow,
				const struct signal_struct *signal)
{
	struct child *child;

	hash_for_each_possible_rcu(follow->children, child, node, (unsigned long)signal) {
		if (child->task->signal == signal)
			return child;
	}
	return NULL;
}

bool ptkit_follows(const struct ptkit_follow *follow, const struct task_struct *task)
{
	if (follow->thread)
		return task == follow->task;
	if (task->signal == follow->task->signal)
		return true;
	return follow->with_children && find_child(follow, task->signal);
}

bool ptkit_follow_allows(const struct ptkit_follow *follow, const struct task_struct *task)
{
	return !follow->switches || ptkit_follows(follow, task);
}

/* Under page-table isolation user code runs with a table of its own, in the page behind. */
u64 ptkit_follow_cr3(const struct ptkit_follow *follow)
{
	u64 cr3 = __pa(READ_ONCE(follow->mm)->pgd);

	return follow->user_table ? cr3 + PAGE_SIZE : cr3;
}

/* Of any thread that is still there: the first one may have ended before the others. */
static struct mm_struct *mm_of(const struct task_struct *task)
{
	struct mm_struct *mm = NULL;
	struct task_struct *thread;

	rcu_read_lock();
	for_each_thread(task, thread) {
		mm = get_task_mm(thread);
		if (mm)
			break;
	}
	rcu_read_unlock();
	if (!mm)
		return NULL;
	mmgrab(mm);
	mmput(mm);
	return mm;
}

static struct task_struct *find_task(const struct ptkit_config *config)
{
	bool thread = config->target == PTKIT_TARGET_TASK;
	struct pid *pid = find_get_pid(thread ? config->task : config->process);
	struct task_struct *task = get_pid_task(pid, thread ? PIDTYPE_PID : PIDTYPE_TGID);
	struct mm_struct *mm;

	put_pid(pid);
	if (!task || thread)
		return task;
	mm = mm_of(task);
	if (!mm) {
		put_task_struct(task);
		return NULL;
	}
	mmdrop(mm);
	return task;
}

struct ptkit_follow *ptkit_follow_make(const struct ptkit_caps *caps,
				       const struct ptkit_config *config)
{
	bool thread = config->target == PTKIT_TARGET_TASK;
	struct ptkit_follow *follow;
	struct task_struct *task;

	if (!thread && !config->process)
		return NULL;
	task = find_task(config);
	if (!task)
		return ERR_PTR(-ESRCH);
	follow = kzalloc(sizeof(*follow), GFP_KERNEL_ACCOUNT);
	if (!follow) {
		put_task_struct(task);
		return ERR_PTR(-ENOMEM);
	}
	follow->task = task;
	follow->thread = thread;
	follow->switches = thread || ptkit_follow_switches(caps, config);
	follow->with_children = config->flags & PTKIT_TRACE_CHILDREN;
	follow->user_table = boot_cpu_has(X86_FEATURE_PTI) && (config->flags & PTKIT_TRACE_USER);
	hash_init(follow->children);
	return follow;
}

void ptkit_follow_free(struct ptkit_follow *follow)
{
	put_task_struct(follow->task);
	kfree(follow);
}

static void free_child(struct rcu_head *rcu)
{
	struct child *child = container_of(rcu, struct child, rcu);

	put_task_struct(child->task);
	kfree(child);
}

/* exec() may have been faster than who asks for the first ones. */
static int first_mm(struct ptkit_follow *follow)
{
	struct mm_struct *mm = mm_of(follow->task);

	if (mm && cmpxchg(&follow->mm, NULL, mm))
		mmdrop(mm);
	return mm ? 0 : -ESRCH;
}

static bool is_over(const struct ptkit_follow *follow)
{
	if (follow->thread)
		return READ_ONCE(follow->task->exit_state);
	return !atomic_read(&follow->task->signal->live);
}

int ptkit_follow_begin(struct ptkit_follow *follow, struct ptkit_trace *roaming)
{
	unsigned long flags;
	int error = ptkit_events_begin(events_of(follow));

	if (error)
		return error;
	follow->error = 0;
	follow->roaming = roaming;
	raw_spin_lock_irqsave(&begun_lock, flags);
	list_add_tail_rcu(&follow->node, &begun);
	raw_spin_unlock_irqrestore(&begun_lock, flags);
	return 0;
}

int ptkit_follow_find(struct ptkit_follow *follow)
{
	if (is_over(follow))
		return -ESRCH;
	return follow->switches ? 0 : first_mm(follow);
}

void ptkit_follow_end(struct ptkit_follow *follow)
{
	struct hlist_node *next;
	struct child *child;
	unsigned long flags;
	int bucket;

	raw_spin_lock_irqsave(&begun_lock, flags);
	list_del_rcu(&follow->node);
	raw_spin_unlock_irqrestore(&begun_lock, flags);
	/* Then nobody looks at it any longer. */
	ptkit_events_end(events_of(follow));
	hash_for_each_safe(follow->children, bucket, next, child, node) {
		hash_del(&child->node);
		free_child(&child->rcu);
	}
	if (follow->mm)
		mmdrop(follow->mm);
	follow->mm = NULL;
}

bool ptkit_follow_any(void)
{
	return !list_empty(&begun);
}

int ptkit_follow_error(const struct ptkit_follow *follow)
{
	return follow ? READ_ONCE(follow->error) : 0;
}

void ptkit_tasks_switch(const struct task_struct *next)
{
	struct ptkit_trace *owner = ptkit_unit_owner();
	const struct ptkit_follow *follow;

	if (owner && owner->follow) {
		if (ptkit_follow_allows(owner->follow, next))
			ptkit_unit_enter(owner, next);
		else
			ptkit_unit_leave(owner);
	}
	list_for_each_entry_rcu(follow, &begun, node) {
		if (follow->roaming && follow->task == next)
			ptkit_unit_enter(follow->roaming, next);
	}
}

void ptkit_tasks_fork(const struct task_struct *parent, struct task_struct *child)
{
	struct ptkit_follow *follow;
	struct child *added;
	unsigned long flags;

	if (parent->signal == child->signal)
		return;
	list_for_each_entry_rcu(follow, &begun, node) {
		if (!follow->with_children || !ptkit_follows(follow, parent))
			continue;
		added = kmalloc(sizeof(*added), GFP_ATOMIC | __GFP_NOWARN);
		if (!added) {
			WRITE_ONCE(follow->error, -ENOMEM);
			continue;
		}
		added->task = get_task_struct(child);
		raw_spin_lock_irqsave(&begun_lock, flags);
		hash_add_rcu(follow->children, &added->node, (unsigned long)child->signal);
		raw_spin_unlock_irqrestore(&begun_lock, flags);
	}
}

/* Where the old page tables are looked for. */
static void renew_here(void *follow)
{
	struct ptkit_trace *trace = ptkit_unit_owner();

	if (!trace || trace->follow != follow || !trace->running)
		return;
	ptkit_unit_leave(trace);
	ptkit_unit_enter(trace, current);
}

/* A process has one thread after exec(), this one, which has not yet left the kernel. */
void ptkit_tasks_exec(const struct task_struct *task)
{
	struct ptkit_follow *follow;
	struct mm_struct *old;

	list_for_each_entry_rcu(follow, &begun, node) {
		if (follow->switches || follow->task->signal != task->signal)
			continue;
		mmgrab(task->mm);
		old = xchg(&follow->mm, task->mm);
		on_each_cpu(renew_here, follow, 1);
		if (old)
			mmdrop(old);
	}
}

/* The last one of a process, or one of its threads. */
void ptkit_tasks_free(const struct task_struct *task)
{
	struct ptkit_follow *follow;
	struct child *child;
	unsigned long flags;

	if (READ_ONCE(task->signal->nr_threads))
		return;
	list_for_each_entry_rcu(follow, &begun, node) {
		raw_spin_lock_irqsave(&begun_lock, flags);
		child = find_child(follow, task->signal);
		if (child)
			hash_del_rcu(&child->node);
		raw_spin_unlock_irqrestore(&begun_lock, flags);
		if (child)
			call_rcu(&child->rcu, free_child);
	}
}
