// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Sideband: records of threads, memory and modules, which a decoder needs besides the trace.
 * Threads come from the scheduler's tracepoints, modules from the kernel's notifier. New mappings
 * have neither tracepoint nor notifier. A kretprobe of perf_event_mmap() reports them: the kernel
 * calls that function for each new mapping, and for each one that becomes executable later. The
 * record is written at the return of the function, which is no trap.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/errno.h>
#include <linux/fs.h>
#include <linux/kdev_t.h>
#include <linux/kprobes.h>
#include <linux/limits.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/mutex.h>
#include <linux/nospec.h>
#include <linux/percpu.h>
#include <linux/pid.h>
#include <linux/printk.h>
#include <linux/rculist.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include <asm/io.h>

#include <trace/events/sched.h>
#include <trace/events/task.h>

#include "follow/events.h"
#include "follow/follow.h"
#include "machine/compat.h"
#include "ptkit/ptkit_ioctl.h"
#include "sideband/sideband.h"

static int mappings_at_once = 128;
module_param(mappings_at_once, int, 0444);
MODULE_PARM_DESC(mappings_at_once,
		 "threads that map memory at the same time; more of them lose records");

static LIST_HEAD(started_ones);
static DEFINE_MUTEX(started_lock); /* for writers; readers have preemption off */
static bool available;

/* Goes through all sidebands that are started. Preemption is off. */
#define for_each_started(sideband)                                                                 \
	list_for_each_entry_rcu(sideband, &started_ones, started, rcu_read_lock_sched_held())

static struct ptkit_ring *ring_here(const struct ptkit_sideband *sideband)
{
	return sideband->of_cpu[smp_processor_id()];
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
	ptkit_ring_write(ring, &space.record, sizeof(space), NULL);
}

static void on_switch(void *data, bool preempt, struct task_struct *from, struct task_struct *to,
		      unsigned int from_state)
{
	const struct ptkit_sideband *sideband;

	for_each_started(sideband) {
		struct ptkit_ring *ring = ring_here(sideband);

		if (ring && (follows(sideband, from) || follows(sideband, to)))
			write_switch(sideband, ring, to);
	}
}

/* Whether a thread that is followed alone begins another thread of its process. */
static bool begins(const struct ptkit_sideband *sideband, const struct task_struct *parent,
		   const struct task_struct *child)
{
	return sideband->anywhere && parent->signal == child->signal && follows(sideband, parent);
}

static void on_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	const struct ptkit_sideband *sideband;

	preempt_disable();
	for_each_started(sideband) {
		struct ptkit_record_fork fork = {};
		struct ptkit_ring *ring = ring_here(sideband);

		if (!ring || !(follows(sideband, child) || begins(sideband, parent, child)))
			continue;
		set_thread(sideband, &fork.record, PTKIT_RECORD_FORK, parent);
		fork.parent_pid = fork.record.pid;
		fork.parent_tid = fork.record.tid;
		set_thread(sideband, &fork.record, PTKIT_RECORD_FORK, child);
		ptkit_ring_write(ring, &fork.record, sizeof(fork), NULL);
	}
	preempt_enable();
}

static void write_name(const struct ptkit_sideband *sideband, struct ptkit_ring *ring,
		       const struct task_struct *task, const char *name)
{
	struct ptkit_record record = {};

	set_thread(sideband, &record, PTKIT_RECORD_NAME, task);
	ptkit_ring_write(ring, &record, sizeof(record), name);
}

static void write_exec(const struct ptkit_sideband *sideband, struct ptkit_ring *ring,
		       const struct task_struct *task)
{
	struct ptkit_record_space space = {};

	set_thread(sideband, &space.record, PTKIT_RECORD_EXEC, task);
	set_space(&space, task->mm);
	ptkit_ring_write(ring, &space.record, sizeof(space), NULL);
}

/*
 * exec() renames the thread when its new address space is still empty. So the EXEC record precedes
 * the MMAP records of the new program; the tracepoint sched_process_exec would follow them.
 */
static void on_rename(void *data, struct task_struct *task, const char *name)
{
	const struct ptkit_sideband *sideband;
	bool in_exec = task == current && task->in_execve;

	preempt_disable();
	for_each_started(sideband) {
		struct ptkit_ring *ring = ring_here(sideband);

		if (!ring || !follows(sideband, task))
			continue;
		if (in_exec)
			write_exec(sideband, ring, task);
		write_name(sideband, ring, task, name);
	}
	preempt_enable();
}

static void on_exit(PTKIT_EXIT_ARGUMENTS)
{
	const struct ptkit_sideband *sideband;

	preempt_disable();
	for_each_started(sideband) {
		struct ptkit_record_exit exit = { .status = task->exit_code };
		struct ptkit_ring *ring = ring_here(sideband);

		if (!ring || !follows(sideband, task))
			continue;
		set_thread(sideband, &exit.record, PTKIT_RECORD_EXIT, task);
		ptkit_ring_write(ring, &exit.record, sizeof(exit), NULL);
	}
	preempt_enable();
}

static struct ptkit_event probes[] = {
	{ .name = "sched_switch", .probe = on_switch },
	{ .name = "sched_process_fork", .probe = on_fork },
	{ .name = "sched_process_exit", .probe = on_exit },
	{ .name = "task_rename", .probe = on_rename },
};

#define ALL_EVENTS (BIT(ARRAY_SIZE(probes)) - 1)

/* After tasks.c, which records first that a child is followed. */
static const struct ptkit_events events = {
	.events = probes,
	.count = ARRAY_SIZE(probes),
	.priority = TRACEPOINT_DEFAULT_PRIO - 1,
};

/* The compiler compares the types of the probes with those of the tracepoints. */
static __maybe_unused void check_types(void)
{
	check_trace_callback_type_sched_switch(on_switch);
	check_trace_callback_type_sched_process_fork(on_fork);
	check_trace_callback_type_sched_process_exit(on_exit);
	check_trace_callback_type_task_rename(on_rename);
}

static char __percpu *path_room; /* PATH_MAX bytes for each processor */

/* The name that perf and /proc/PID/maps use. */
static const char *name_of(struct vm_area_struct *vma)
{
	const char *name = NULL;

	if (vma->vm_file)
		name = d_path(&vma->vm_file->f_path, this_cpu_ptr(path_room), PATH_MAX);
	else if (vma->vm_ops && vma->vm_ops->name)
		name = vma->vm_ops->name(vma);
	return IS_ERR_OR_NULL(name) ? "//anon" : name;
}

static void describe_mapping(struct ptkit_record_mmap *mmap, struct vm_area_struct *vma)
{
	const struct inode *inode;

	mmap->address = vma->vm_start;
	mmap->bytes = vma->vm_end - vma->vm_start;
	if (!vma->vm_file)
		return;
	inode = file_inode(vma->vm_file);
	mmap->file_offset = (u64)vma->vm_pgoff << PAGE_SHIFT;
	mmap->inode = inode->i_ino;
	mmap->device_major = MAJOR(inode->i_sb->s_dev);
	mmap->device_minor = MINOR(inode->i_sb->s_dev);
}

static bool of_interest(const struct task_struct *task)
{
	const struct ptkit_sideband *sideband;

	for_each_started(sideband) {
		if (ring_here(sideband) && follows(sideband, task))
			return true;
	}
	return false;
}

static void note_mapping(struct vm_area_struct *vma)
{
	const struct ptkit_sideband *sideband;
	const char *name = name_of(vma);

	for_each_started(sideband) {
		struct ptkit_record_mmap mmap = {};
		struct ptkit_ring *ring = ring_here(sideband);

		if (!ring || !follows(sideband, current))
			continue;
		set_thread(sideband, &mmap.record, PTKIT_RECORD_MMAP, current);
		describe_mapping(&mmap, vma);
		ptkit_ring_write(ring, &mmap.record, sizeof(mmap), name);
	}
}

/* May run in a trap: reads the argument only. Nonzero: no record at the return. */
static int mapping_begins(struct kretprobe_instance *instance, struct pt_regs *registers)
{
	struct vm_area_struct *vma = (void *)regs_get_kernel_argument(registers, 0);

	*(struct vm_area_struct **)instance->data = vma;
	return !(vma->vm_flags & VM_EXEC) || vma->vm_mm != current->mm;
}

/* The caller of perf_event_mmap() has locked the address space. */
static int mapping_ends(struct kretprobe_instance *instance, struct pt_regs *registers)
{
	preempt_disable_notrace();
	if (of_interest(current))
		note_mapping(*(struct vm_area_struct **)instance->data);
	preempt_enable_notrace();
	return 0;
}

static struct kretprobe mapping_probe = {
	.kp.symbol_name = "perf_event_mmap",
	.kp.flags = KPROBE_FLAG_DISABLED,
	.entry_handler = mapping_begins,
	.handler = mapping_ends,
	.data_size = sizeof(struct vm_area_struct *),
};

/* Mappings without a record, since the module was loaded. */
static u64 missed_mappings(void)
{
	return (unsigned int)READ_ONCE(mapping_probe.nmissed) + READ_ONCE(mapping_probe.kp.nmissed);
}

/* Which processor and which process missed them, is not known. */
void ptkit_sideband_count_missed(struct ptkit_sideband *sideband)
{
	u64 missed = missed_mappings();

	if (!sideband->rings || !sideband->listens || missed == sideband->missed)
		return;
	ptkit_ring_lose(&sideband->rings[0], missed - sideband->missed);
	sideband->missed = missed;
}

/* Each sideband has modules: all processes run their code. */
static int note_module(struct notifier_block *block, unsigned long state, void *data)
{
	const struct module *module = data;
	const struct ptkit_sideband *sideband;

	if (state != MODULE_STATE_COMING && state != MODULE_STATE_GOING)
		return NOTIFY_DONE;
	preempt_disable();
	for_each_started(sideband) {
		struct ptkit_record_mmap mmap = {};
		struct ptkit_ring *ring = ring_here(sideband);

		if (!ring)
			continue;
		mmap.record.type = state == MODULE_STATE_COMING ? PTKIT_RECORD_MODULE :
								  PTKIT_RECORD_MODULE_GONE;
		mmap.address = ptkit_module_text(module, &mmap.bytes);
		ptkit_ring_write(ring, &mmap.record, sizeof(mmap), module->name);
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

bool ptkit_sideband_available(void)
{
	return available;
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
	for (cpu = 0; sideband->anywhere && cpu < nr_cpu_ids; cpu++)
		sideband->of_cpu[cpu] = &sideband->rings[0];
	return 0;
}

int ptkit_sideband_make(struct ptkit_sideband *sideband, const struct cpumask *cpus, u64 bytes,
			wait_queue_head_t *wait)
{
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

	if (ring && (!sideband->anywhere || follows(sideband, current)))
		write_switch(sideband, ring, current);
}

static int listen(void)
{
	int error = ptkit_events_begin(&events, ALL_EVENTS);

	if (error)
		return error;
	error = enable_kretprobe(&mapping_probe);
	if (error)
		ptkit_events_end(&events, ALL_EVENTS);
	return error;
}

static void end_listening(void)
{
	disable_kretprobe(&mapping_probe);
	ptkit_events_end(&events, ALL_EVENTS);
}

static int add(struct ptkit_sideband *sideband)
{
	int error = 0;

	mutex_lock(&started_lock);
	if (list_empty(&started_ones))
		error = listen();
	if (!error)
		list_add_rcu(&sideband->started, &started_ones);
	sideband->listens = !error;
	sideband->missed = missed_mappings();
	mutex_unlock(&started_lock);
	return error;
}

int ptkit_sideband_start(struct ptkit_sideband *sideband)
{
	unsigned int cpu;
	unsigned int i;
	int error;

	if (!sideband->rings)
		return 0;
	for (i = 0; i < sideband->count; i++)
		ptkit_ring_reset(&sideband->rings[i]);
	error = add(sideband);
	if (error)
		return error;
	cpus_read_lock();
	for_each_online_cpu(cpu)
		smp_call_function_single(cpu, note_present, sideband, 1);
	cpus_read_unlock();
	return 0;
}

void ptkit_sideband_stop(struct ptkit_sideband *sideband)
{
	if (!sideband->rings)
		return;
	ptkit_sideband_count_missed(sideband);
	mutex_lock(&started_lock);
	sideband->listens = false;
	list_del_rcu(&sideband->started);
	if (list_empty(&started_ones))
		end_listening();
	mutex_unlock(&started_lock);
	synchronize_rcu();
}

struct ptkit_ring *ptkit_sideband_ring(const struct ptkit_sideband *sideband, unsigned int cpu)
{
	if (!sideband->rings || cpu >= nr_cpu_ids)
		return NULL;
	return sideband->of_cpu[array_index_nospec(cpu, nr_cpu_ids)];
}

static int listen_to_all(void)
{
	int error;

	if (!ptkit_events_find(&events))
		return -EOPNOTSUPP;
	path_room = __alloc_percpu(PATH_MAX, 1);
	if (!path_room)
		return -ENOMEM;
	mapping_probe.maxactive = mappings_at_once;
	error = register_kretprobe(&mapping_probe); /* disabled */
	if (error)
		return error;
	error = register_module_notifier(&module_notifier);
	if (error)
		unregister_kretprobe(&mapping_probe);
	return error;
}

void ptkit_sideband_init(void)
{
	int error = listen_to_all();

	available = !error;
	if (error)
		pr_notice("no sideband here: error %d\n", error);
}

void ptkit_sideband_exit(void)
{
	if (available) {
		unregister_module_notifier(&module_notifier);
		unregister_kretprobe(&mapping_probe);
	}
	free_percpu(path_room);
}
