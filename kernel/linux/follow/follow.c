// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The CR3 filter selects a process if the processor has it and page tables suffice to select what
 * is wanted; exec() gives the process new page tables. With linear address masking (LAM) CR3 of a
 * process has more bits, which the manual does not exclude from the comparison. Otherwise tracing
 * is switched on and off at context switches (unit/tasks.c).
 *
 * A process is identified by its signal_struct. All of its threads share it from fork() on, and
 * keep it across exec(). No other process gets this signal_struct as long as a reference to one of
 * the threads is held. A thread is identified by its task_struct. So reused PIDs and TIDs do not
 * matter.
 */
#include <linux/cpufeature.h>
#include <linux/err.h>
#include <linux/pid.h>
#include <linux/rculist.h>
#include <linux/sched/mm.h>
#include <linux/sched/signal.h>
#include <linux/sched/task.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include <asm/io.h>

#include "follow/follow.h"
#include "machine/caps.h"
#include "ptkit/rtit_regs.h"

/* A process that a followed process has created. */
struct child {
	struct hlist_node node; /* in ptkit_follow.children, by task->signal */
	struct rcu_head rcu;
	struct task_struct *task; /* a reference: the first thread */
};

bool ptkit_follow_switches(const struct ptkit_config *config)
{
	const u64 both = PTKIT_TRACE_USER | PTKIT_TRACE_KERNEL;

	return (config->flags & PTKIT_TRACE_CHILDREN) || (config->flags & both) == both ||
	       config->output == PTKIT_OUTPUT_BTS || ptkit_caps.address_masking ||
	       !(ptkit_caps.cpuid_14_0[1] & BIT(PT_CPUID_14_EBX_CR3_FILTER));
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

/* Under page-table isolation user code runs with its own table, which lies in the next page. */
u64 ptkit_follow_cr3(const struct ptkit_follow *follow)
{
	const struct mm_struct *mm = READ_ONCE(follow->mm);
	u64 cr3;

	if (!mm)
		return 0;
	cr3 = __pa(mm->pgd);
	return follow->user_table ? cr3 + PAGE_SIZE : cr3;
}

/* The memory of any thread that is left: the first thread may have ended before the others. */
struct mm_struct *ptkit_task_mm(const struct task_struct *task)
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
	mm = ptkit_task_mm(task);
	if (!mm) {
		put_task_struct(task);
		return NULL;
	}
	mmdrop(mm);
	return task;
}

struct ptkit_follow *ptkit_follow_make(const struct ptkit_config *config)
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
	follow->switches = thread || ptkit_follow_switches(config);
	follow->with_children = config->flags & PTKIT_TRACE_CHILDREN;
	follow->user_table = boot_cpu_has(X86_FEATURE_PTI) && (config->flags & PTKIT_TRACE_USER);
	raw_spin_lock_init(&follow->children_lock);
	hash_init(follow->children);
	return follow;
}

void ptkit_follow_free(struct ptkit_follow *follow)
{
	put_task_struct(follow->task);
	kfree(follow);
}

int ptkit_follow_error(const struct ptkit_follow *follow)
{
	return follow ? READ_ONCE(follow->error) : 0;
}

/* The probe of exec() may have set the page tables before. */
static int first_mm(struct ptkit_follow *follow)
{
	struct mm_struct *mm = ptkit_task_mm(follow->task);

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

int ptkit_follow_find(struct ptkit_follow *follow)
{
	if (is_over(follow))
		return -ESRCH;
	return follow->switches ? 0 : first_mm(follow);
}

static void free_child(struct rcu_head *rcu)
{
	struct child *child = container_of(rcu, struct child, rcu);

	put_task_struct(child->task);
	kfree(child);
}

void ptkit_follow_forget(struct ptkit_follow *follow)
{
	struct hlist_node *next;
	struct child *child;
	int bucket;

	hash_for_each_safe(follow->children, bucket, next, child, node) {
		hash_del(&child->node);
		free_child(&child->rcu);
	}
	if (follow->mm)
		mmdrop(follow->mm);
	follow->mm = NULL;
}

void ptkit_follow_add_child(struct ptkit_follow *follow, struct task_struct *child)
{
	struct child *added = kmalloc(sizeof(*added), GFP_ATOMIC | __GFP_NOWARN);
	unsigned long flags;

	if (!added) {
		WRITE_ONCE(follow->error, -ENOMEM);
		return;
	}
	added->task = get_task_struct(child);
	raw_spin_lock_irqsave(&follow->children_lock, flags);
	hash_add_rcu(follow->children, &added->node, (unsigned long)child->signal);
	raw_spin_unlock_irqrestore(&follow->children_lock, flags);
}

void ptkit_follow_remove_child(struct ptkit_follow *follow, const struct task_struct *task)
{
	struct child *child;
	unsigned long flags;

	raw_spin_lock_irqsave(&follow->children_lock, flags);
	child = find_child(follow, task->signal);
	if (child)
		hash_del_rcu(&child->node);
	raw_spin_unlock_irqrestore(&follow->children_lock, flags);
	if (child)
		call_rcu(&child->rcu, free_child);
}

struct mm_struct *ptkit_follow_set_mm(struct ptkit_follow *follow, struct mm_struct *mm)
{
	mmgrab(mm);
	return xchg(&follow->mm, mm);
}
