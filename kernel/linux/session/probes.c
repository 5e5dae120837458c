// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Tracepoints are found by name, as their symbols are not exported. A probe is registered only
 * while a session needs it. Following comes before the sideband, which asks whether a child is
 * followed.
 *
 * From Linux 7.0 on probes may run with preemption on: those that read lists of RCU, or the number
 * of the processor, disable it. A probe of sched_switch runs before the switch, with interrupts off
 * and the runqueue locked: only an irq_work may wake up a task there.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/errno.h>
#include <linux/mutex.h>
#include <linux/printk.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include <trace/events/sched.h>

#include "machine/compat.h"
#include "session/probes.h"
#include "sideband/sideband.h"
#include "unit/tasks.h"

static void on_switch(void *data, bool preempt, struct task_struct *from, struct task_struct *to,
		      unsigned int from_state)
{
	ptkit_tasks_on_switch(to);
	ptkit_sideband_on_switch(from, to);
}

static void on_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	ptkit_tasks_on_fork(parent, child);
	ptkit_sideband_on_fork(child);
}

static void on_exec(void *data, struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)
{
	ptkit_tasks_on_exec(task);
	ptkit_sideband_on_exec(task);
}

static void on_exit(PTKIT_EXIT_ARGUMENTS)
{
	ptkit_sideband_on_exit(task);
}

static void on_free(void *data, struct task_struct *task)
{
	ptkit_tasks_on_free(task);
}

/* By the numbers of the bits. */
static struct {
	const char *name;
	void *probe;
	struct tracepoint *tracepoint; /* null: the kernel has none of that name */
	unsigned int users; /* ptkit_probes_begin() without ptkit_probes_end() */
} probes[] = {
	{.name = "sched_switch", .probe = on_switch},
	{.name = "sched_process_fork", .probe = on_fork},
	{.name = "sched_process_exec", .probe = on_exec},
	{.name = "sched_process_exit", .probe = on_exit},
	{.name = "sched_process_free", .probe = on_free},
};

static DEFINE_MUTEX(probes_lock);
static unsigned int registered; /* bits */
static bool available;

/* The compiler compares the types of the probes with those of the tracepoints. */
static __maybe_unused void check_types(void)
{
	check_trace_callback_type_sched_switch(on_switch);
	check_trace_callback_type_sched_process_fork(on_fork);
	check_trace_callback_type_sched_process_exec(on_exec);
	check_trace_callback_type_sched_process_exit(on_exit);
	check_trace_callback_type_sched_process_free(on_free);
}

static void note_tracepoint(struct tracepoint *tracepoint, void *unused)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		if (!strcmp(tracepoint->name, probes[i].name))
			probes[i].tracepoint = tracepoint;
	}
}

void ptkit_probes_init(void)
{
	unsigned int i;

	for_each_kernel_tracepoint(note_tracepoint, NULL);
	available = true;
	for (i = 0; i < ARRAY_SIZE(probes); i++)
		available &= !!probes[i].tracepoint;
	if (!available)
		pr_notice("neither processes nor sideband: the kernel lacks a tracepoint\n");
}

bool ptkit_probes_available(void)
{
	return available;
}

static int begin(unsigned int i)
{
	int error = 0;

	if (!probes[i].users)
		error = tracepoint_probe_register(probes[i].tracepoint, probes[i].probe, NULL);
	if (error)
		return error;
	probes[i].users++;
	registered |= BIT(i);
	return 0;
}

static void end_all(unsigned int wanted)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(probes); i++) {
		if (!(wanted & BIT(i)) || --probes[i].users)
			continue;
		tracepoint_probe_unregister(probes[i].tracepoint, probes[i].probe, NULL);
		registered &= ~BIT(i);
	}
}

int ptkit_probes_begin(unsigned int wanted)
{
	unsigned int begun = 0;
	unsigned int i;
	int error = 0;

	mutex_lock(&probes_lock);
	for (i = 0; i < ARRAY_SIZE(probes) && !error; i++) {
		if (!(wanted & BIT(i)))
			continue;
		error = begin(i);
		if (!error)
			begun |= BIT(i);
	}
	if (error)
		end_all(begun);
	mutex_unlock(&probes_lock);
	return error;
}

void ptkit_probes_end(unsigned int wanted)
{
	mutex_lock(&probes_lock);
	end_all(wanted);
	mutex_unlock(&probes_lock);
	tracepoint_synchronize_unregister();
}

bool ptkit_probes_any(void)
{
	return READ_ONCE(registered);
}
