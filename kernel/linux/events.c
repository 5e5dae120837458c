// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * What the kernel says about tasks: its tracepoints, which are found by name, for their symbols are
 * not exported. Each one is listened to only while somebody needs it.
 *
 * All of them come with preemption off. That of a switch comes before it is done, with interrupts
 * off and the runqueue locked: nothing may wake up anybody there but an irq_work.
 */
#include <linux/errno.h>
#include <linux/mutex.h>
#include <linux/string.h>
#include <linux/tracepoint.h>

#include <trace/events/sched.h>
#include <trace/events/task.h>

#include "ptkit.h"
#include "sideband.h"

static void on_switch(void *data, bool preempt, struct task_struct *prev, struct task_struct *next,
		      unsigned int prev_state)
{
	ptkit_tasks_switch(next);
	ptkit_sideband_switch(prev, next);
}

static void on_fork(void *data, struct task_struct *parent, struct task_struct *child)
{
	ptkit_tasks_fork(parent, child);
	ptkit_sideband_fork(parent, child);
}

static void on_exec(void *data, struct task_struct *task, pid_t old_pid, struct linux_binprm *bprm)
{
	ptkit_tasks_exec(task);
}

static void on_exit(void *data, struct task_struct *task)
{
	ptkit_sideband_exit_task(task);
}

static void on_rename(void *data, struct task_struct *task, const char *name)
{
	ptkit_sideband_rename(task, name);
}

static void on_free(void *data, struct task_struct *task)
{
	ptkit_tasks_free(task);
}

static struct event {
	const char *name;
	void *probe;
	struct tracepoint *tracepoint;
	unsigned int users;
} events[] = {
	[PTKIT_EVENT_SWITCH] = { "sched_switch", on_switch },
	[PTKIT_EVENT_FORK] = { "sched_process_fork", on_fork },
	[PTKIT_EVENT_EXEC] = { "sched_process_exec", on_exec },
	[PTKIT_EVENT_FREE] = { "sched_process_free", on_free },
	[PTKIT_EVENT_EXIT] = { "sched_process_exit", on_exit },
	[PTKIT_EVENT_RENAME] = { "task_rename", on_rename },
};

static DEFINE_MUTEX(events_lock);

/* The compiler compares what is called with what the kernel calls. */
static __maybe_unused void check_types(void)
{
	check_trace_callback_type_sched_switch(on_switch);
	check_trace_callback_type_sched_process_fork(on_fork);
	check_trace_callback_type_sched_process_exec(on_exec);
	check_trace_callback_type_sched_process_free(on_free);
	check_trace_callback_type_sched_process_exit(on_exit);
	check_trace_callback_type_task_rename(on_rename);
}

static void note_tracepoint(struct tracepoint *tracepoint, void *found)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		if (strcmp(tracepoint->name, events[i].name))
			continue;
		events[i].tracepoint = tracepoint;
		*(unsigned int *)found |= BIT(i);
	}
}

static unsigned int found;

void ptkit_events_init(void)
{
	for_each_kernel_tracepoint(note_tracepoint, &found);
}

bool ptkit_events_found(unsigned int wanted)
{
	return (found & wanted) == wanted;
}

static void leave(unsigned int left)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		if ((left & BIT(i)) && !--events[i].users)
			tracepoint_probe_unregister(events[i].tracepoint, events[i].probe, NULL);
	}
}

int ptkit_events_begin(unsigned int wanted)
{
	unsigned int begun = 0;
	unsigned int i;
	int error = 0;

	mutex_lock(&events_lock);
	for (i = 0; i < ARRAY_SIZE(events) && !error; i++) {
		if (!(wanted & BIT(i)))
			continue;
		if (!events[i].users)
			error = tracepoint_probe_register(events[i].tracepoint, events[i].probe,
							  NULL);
		if (!error) {
			events[i].users++;
			begun |= BIT(i);
		}
	}
	if (error)
		leave(begun);
	mutex_unlock(&events_lock);
	return error;
}

void ptkit_events_end(unsigned int wanted)
{
	mutex_lock(&events_lock);
	leave(wanted);
	mutex_unlock(&events_lock);
	tracepoint_synchronize_unregister();
}

bool ptkit_events_any(void)
{
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(events); i++) {
		if (events[i].users)
			return true;
	}
	return false;
}
