// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Sideband: records of what only a module knows, and a decoder needs besides the trace: context
 * switches and page tables from the scheduler's tracepoints, kernel modules from their notifier.
 * Mappings and names are recorded by perf's dummy events, which the recorder opens.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/errno.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/pid.h>
#include <linux/printk.h>
#include <linux/rculist.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include <linux/smp.h>
#include <linux/string.h>

#include <asm/io.h>

#include "follow/follow.h"
#include "machine/compat.h"
#include "ptkit/ptkit_ioctl.h"
#include "sideband/sideband.h"

static LIST_HEAD(started_ones);
static DEFINE_MUTEX(started_lock); /* for writers; readers have preemption off */

/* Goes through all sidebands that are started. Preemption is off. */
#define for_each_started(sideband)                                                                 \
	list_for_each_entry_rcu(sideband, &started_ones, started, rcu_read_lock_sched_held())

static struct ptkit_ring *ring_here(const struct ptkit_sideband *sideband)
{
	return sideband->of_cpu[smp_processor_id()];
}

static bool is_of_thread(const struct ptkit_sideband *sideband)
{
	return sideband->follow && sideband->follow->thread;
}

static bool follows(const struct ptkit_sideband *sideband, const struct task_struct *task)
{
	return !sideband->follow || ptkit_follows(sideband->follow, task);
}

static void set_thread(const struct ptkit_sideband *sideband, struct ptkit_record *record, u16 type,
		       const struct task_struct *task)
{
	record->type = type;
	if (!sideband->ns->level) {
		/* Unlike numbers of a namespace, these outlive wait() by the parent. */
		record->pid = task->tgid;
		record->tid = task->pid;
		return;
	}
	record->pid = task_tgid_nr_ns((struct task_struct *)task, sideband->ns);
	record->tid = task_pid_nr_ns((struct task_struct *)task, sideband->ns);
}

/* Kernel threads have zeros: they run with the page tables of the thread before. */
static void set_space(struct ptkit_record_space *space, const struct mm_struct *mm)
{
	if (!mm)
		return;
	space->kernel_cr3 = __pa(mm->pgd);
	space->user_cr3 = space->kernel_cr3;
	/* User code has its own table, in the next page. */
	if (boot_cpu_has(X86_FEATURE_PTI))
		space->user_cr3 += PAGE_SIZE;
}

static void write_switch(const struct ptkit_sideband *sideband, struct ptkit_ring *ring,
			 const struct task_struct *to)
{
	struct ptkit_record_space space = {};

	set_thread(sideband, &space.record, PTKIT_RECORD_SWITCH, to);
	if (follows(sideband, to)) {
		set_space(&space, to->mm);
	} else {
		space.record.pid = -1;
		space.record.tid = -1;
	}
	ptkit_ring_write(ring, &space.record, sizeof(space));
}

void ptkit_sideband_on_switch(const struct task_struct *from, const struct task_struct *to)
{
	const struct ptkit_sideband *sideband;

	for_each_started(sideband) {
		struct ptkit_ring *ring = ring_here(sideband);

		if (ring && (follows(sideband, from) || follows(sideband, to)))
			write_switch(sideband, ring, to);
	}
}

/* Runs in the parent. */
static void write_fork(const struct ptkit_sideband *sideband, struct ptkit_ring *ring,
		       const struct task_struct *child)
{
	struct ptkit_record_fork fork = {};

	set_thread(sideband, &fork.space.record, PTKIT_RECORD_FORK, current);
	fork.parent_pid = fork.space.record.pid;
	fork.parent_tid = fork.space.record.tid;
	set_thread(sideband, &fork.space.record, PTKIT_RECORD_FORK, child);
	set_space(&fork.space, child->mm);
	ptkit_ring_write(ring, &fork.space.record, sizeof(fork));
}

static void write_exec(const struct ptkit_sideband *sideband, struct ptkit_ring *ring,
		       const struct task_struct *task)
{
	struct ptkit_record_space space = {};

	set_thread(sideband, &space.record, PTKIT_RECORD_EXEC, task);
	set_space(&space, task->mm);
	ptkit_ring_write(ring, &space.record, sizeof(space));
}

static void write_exit(const struct ptkit_sideband *sideband, struct ptkit_ring *ring,
		       const struct task_struct *task)
{
	struct ptkit_record_exit exit = { .status = task->exit_code };

	set_thread(sideband, &exit.record, PTKIT_RECORD_EXIT, task);
	ptkit_ring_write(ring, &exit.record, sizeof(exit));
}

typedef void write_fn(const struct ptkit_sideband *sideband, struct ptkit_ring *ring,
		      const struct task_struct *task);

/* It follows the task, or follows a thread alone that begins this thread of its process. */
static bool concerns(const struct ptkit_sideband *sideband, const struct task_struct *task)
{
	return follows(sideband, task) ||
	       (is_of_thread(sideband) && task->signal == current->signal &&
		follows(sideband, current));
}

/* Writes a record of the task to each sideband that it concerns. */
static void write_all(write_fn *write, const struct task_struct *task)
{
	const struct ptkit_sideband *sideband;

	preempt_disable();
	for_each_started(sideband) {
		struct ptkit_ring *ring = ring_here(sideband);

		if (ring && concerns(sideband, task))
			write(sideband, ring, task);
	}
	preempt_enable();
}

void ptkit_sideband_on_fork(const struct task_struct *child)
{
	write_all(write_fork, child);
}

void ptkit_sideband_on_exec(const struct task_struct *task)
{
	write_all(write_exec, task);
}

void ptkit_sideband_on_exit(const struct task_struct *task)
{
	write_all(write_exit, task);
}

/* Each sideband has modules: all processes run their code. */
static int note_module(struct notifier_block *block, unsigned long state, void *data)
{
	const struct module *module = data;
	const struct ptkit_sideband *sideband;
	struct ptkit_record_module found = {
		.record.type = state == MODULE_STATE_COMING ? PTKIT_RECORD_MODULE :
							      PTKIT_RECORD_MODULE_GONE,
	};

	BUILD_BUG_ON(sizeof(found.name) != MODULE_NAME_LEN);
	if (state != MODULE_STATE_COMING && state != MODULE_STATE_GOING)
		return NOTIFY_DONE;
	found.address = ptkit_module_text(module, &found.bytes);
	strscpy(found.name, module->name, sizeof(found.name));
	preempt_disable();
	for_each_started(sideband) {
		struct ptkit_ring *ring = ring_here(sideband);

		if (ring)
			ptkit_ring_write(ring, &found.record, sizeof(found));
	}
	preempt_enable();
	return NOTIFY_DONE;
}

static struct notifier_block module_notifier = {
	.notifier_call = note_module,
};

bool ptkit_sideband_any(void)
{
	return !list_empty(&started_ones);
}

static int make_rings(struct ptkit_sideband *sideband, const struct cpumask *cpus, u64 bytes,
		      wait_queue_head_t *wait)
{
	unsigned int cpu;

	for_each_cpu(cpu, cpus) {
		struct ptkit_ring *ring = &sideband->rings[sideband->count];
		int error = ptkit_ring_make(ring, bytes, wait);

		if (error)
			return error;
		sideband->of_cpu[cpu] = ring;
		sideband->count++;
	}
	for (cpu = 0; is_of_thread(sideband) && cpu < nr_cpu_ids; cpu++)
		sideband->of_cpu[cpu] = &sideband->rings[0];
	return 0;
}

int ptkit_sideband_make(struct ptkit_sideband *sideband, const struct ptkit_follow *follow,
			const struct cpumask *cpus, u64 bytes, wait_queue_head_t *wait)
{
	sideband->follow = follow;
	sideband->rings =
		kvcalloc(cpumask_weight(cpus), sizeof(*sideband->rings), GFP_KERNEL_ACCOUNT);
	sideband->of_cpu = kvcalloc(nr_cpu_ids, sizeof(*sideband->of_cpu), GFP_KERNEL_ACCOUNT);
	if (!sideband->rings || !sideband->of_cpu)
		return -ENOMEM;
	sideband->ns = get_pid_ns(task_active_pid_ns(current));
	return make_rings(sideband, cpus, bytes, wait);
}

void ptkit_sideband_free(struct ptkit_sideband *sideband)
{
	unsigned int i;

	for (i = 0; i < sideband->count; i++)
		ptkit_ring_free(&sideband->rings[i]);
	if (sideband->ns)
		put_pid_ns(sideband->ns);
	kvfree(sideband->of_cpu);
	kvfree(sideband->rings);
	memset(sideband, 0, sizeof(*sideband));
}

/* The thread that runs on this processor when the sideband starts. */
static void note_present(void *argument)
{
	const struct ptkit_sideband *sideband = argument;
	struct ptkit_ring *ring = ring_here(sideband);

	if (ring && (!is_of_thread(sideband) || follows(sideband, current)))
		write_switch(sideband, ring, current);
}

/* The page tables of the followed process, on the processor of the first ring. */
struct followed {
	struct ptkit_ring *ring;
	struct ptkit_record_space space;
};

static void note_followed(void *argument)
{
	struct followed *followed = argument;

	ptkit_ring_write(followed->ring, &followed->space.record, sizeof(followed->space));
}

/* Precedes all other records. After an exec() meanwhile, the next SWITCH has the new tables. */
static void write_followed(const struct ptkit_sideband *sideband)
{
	struct followed followed = { .ring = sideband->rings };
	struct mm_struct *mm = ptkit_task_mm(sideband->follow->task);
	unsigned int cpu;

	if (!mm)
		return;
	set_thread(sideband, &followed.space.record, PTKIT_RECORD_SPACE, sideband->follow->task);
	set_space(&followed.space, mm);
	mmdrop(mm);
	cpus_read_lock();
	for_each_online_cpu(cpu) {
		if (sideband->of_cpu[cpu] == followed.ring &&
		    !smp_call_function_single(cpu, note_followed, &followed, 1))
			break;
	}
	cpus_read_unlock();
}

void ptkit_sideband_start(struct ptkit_sideband *sideband)
{
	unsigned int cpu;
	unsigned int i;

	if (!sideband->rings)
		return;
	for (i = 0; i < sideband->count; i++)
		pt_ring_reset(&sideband->rings[i].pt);
	if (sideband->follow)
		write_followed(sideband);
	mutex_lock(&started_lock);
	list_add_rcu(&sideband->started, &started_ones);
	mutex_unlock(&started_lock);
	cpus_read_lock();
	for_each_online_cpu(cpu)
		smp_call_function_single(cpu, note_present, sideband, 1);
	cpus_read_unlock();
}

void ptkit_sideband_stop(struct ptkit_sideband *sideband)
{
	if (!sideband->rings)
		return;
	mutex_lock(&started_lock);
	list_del_rcu(&sideband->started);
	mutex_unlock(&started_lock);
	synchronize_rcu();
}

struct ptkit_ring *ptkit_sideband_ring(const struct ptkit_sideband *sideband, unsigned int cpu)
{
	if (!sideband->rings || cpu >= nr_cpu_ids)
		return NULL;
	return sideband->of_cpu[array_index_nospec(cpu, nr_cpu_ids)];
}

int ptkit_sideband_init(void)
{
	return register_module_notifier(&module_notifier);
}

void ptkit_sideband_exit(void)
{
	unregister_module_notifier(&module_notifier);
}
