// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Which session traces on which processor, and what happens when processors go offline and online.
 *
 * A processor belongs to a session from start to stop. A trace that goes with a task owns the
 * processor that the task runs on, as long as the task runs there. If another session owns that
 * processor, the trace gets an error: a context switch cannot wait.
 *
 * Lock order: a session's lock, the processors' (cpus_read_lock), `units_lock`. No user memory is
 * touched under the latter two. A processor's owner is read on that processor with interrupts off,
 * at context switches. It is also removed there, so no owner disappears while a reader uses it.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/errno.h>
#include <linux/printk.h>
#include <linux/sched.h>
#include <linux/smp.h>

#include "follow/follow.h"
#include "machine/caps.h"
#include "machine/errors.h"
#include "unit/bts.h"
#include "unit/memory.h"
#include "unit/reserve.h"
#include "unit/running.h"
#include "unit/units.h"

static DEFINE_MUTEX(units_lock);
static DEFINE_PER_CPU(struct ptkit_trace *, unit_owner);
/* From come_online() to go_offline(): tasks are also switched before and afterwards. */
static DEFINE_PER_CPU(bool, unit_usable);
static enum cpuhp_state hotplug_state;

struct ptkit_trace *ptkit_unit_owner(void)
{
	return this_cpu_read(unit_owner);
}

static bool claim(struct ptkit_trace *trace, unsigned int cpu)
{
	struct ptkit_trace *owner = cmpxchg(per_cpu_ptr(&unit_owner, cpu), NULL, trace);

	return !owner || owner == trace;
}

static bool may_run(const struct ptkit_trace *trace, const struct task_struct *task)
{
	/* Pairs with load() of pt_units.c, which writes the other members before. */
	if (!smp_load_acquire(&trace->pt.wanted) || trace->pt.running || trace->pt.error)
		return false;
	if (trace->pt.full && !trace->pt.wakes_up)
		return false;
	return !trace->follow || ptkit_follow_allows(trace->follow, task);
}

void ptkit_unit_enter(struct ptkit_trace *trace, struct task_struct *task)
{
	unsigned int cpu = smp_processor_id();
	bool refused = !trace->pt.bts && ptkit_is_refused(cpu);

	if (!this_cpu_read(unit_usable) || !may_run(trace, task))
		return;
	if (refused && !trace->roams)
		return;
	if (trace->roams && (refused || !claim(trace, cpu))) {
		trace->pt.error = PT_E_BUSY;
		irq_work_queue(&trace->work);
		return;
	}
	if (trace->follow)
		trace->pt.state.cr3_match = ptkit_follow_cr3(trace->follow);
	if (trace->pt.bts)
		ptkit_bts_set_thread(trace, task);
	ptkit_run(trace);
	if (trace->roams && !trace->pt.running)
		this_cpu_write(unit_owner, NULL);
}

void ptkit_unit_leave(struct ptkit_trace *trace)
{
	if (trace->pt.running)
		ptkit_halt(trace);
	if (trace->roams && !trace->pt.running)
		this_cpu_write(unit_owner, NULL);
}

static void enter_here(void *trace)
{
	ptkit_unit_enter(trace, current);
}

static void leave_here(void *argument)
{
	struct ptkit_trace *trace = argument;

	if (this_cpu_read(unit_owner) == trace)
		ptkit_unit_leave(trace);
	if (!trace->pt.running && ptkit_is_live(trace))
		ptkit_halt(trace);
}

static void serve_here(void *trace)
{
	if (this_cpu_read(unit_owner) == trace)
		ptkit_serve(trace);
}

static void disown_here(void *trace)
{
	ptkit_forget(trace);
	if (this_cpu_read(unit_owner) == trace)
		this_cpu_write(unit_owner, NULL);
}

/* Calls a function on each processor that the trace may run on, if the processor is online. */
static int call(struct ptkit_trace *trace, smp_call_func_t function)
{
	if (!trace->roams)
		return smp_call_function_single(trace->cpu, function, trace, 1);
	on_each_cpu(function, trace, 1);
	return 0;
}

static void load(struct pt_trace *pt)
{
	call(container_of(pt, struct ptkit_trace, pt), enter_here);
}

/* On a processor that is offline, go_offline() has stopped the trace. */
static void unload(struct pt_trace *pt)
{
	call(container_of(pt, struct ptkit_trace, pt), leave_here);
}

/* A trace that goes with a task may come to any processor. */
static void on_each_unit(const struct ptkit_trace *trace, void (*function)(unsigned int cpu))
{
	unsigned int cpu;

	if (trace->pt.bts)
		return;
	if (!trace->roams)
		return function(trace->cpu);
	for_each_possible_cpu(cpu)
		function(cpu);
}

static int own(struct pt_trace *pt)
{
	struct ptkit_trace *trace = container_of(pt, struct ptkit_trace, pt);

	if (!trace->roams && !claim(trace, trace->cpu))
		return PT_E_OWNED;
	on_each_unit(trace, ptkit_reserve);
	trace->reported = U64_MAX;
	return 0;
}

static void disown(struct pt_trace *pt)
{
	struct ptkit_trace *trace = container_of(pt, struct ptkit_trace, pt);

	on_each_unit(trace, ptkit_unreserve);
	/* Readers of the owner run on that processor: an offline one has no reader. */
	if (call(trace, disown_here))
		per_cpu(unit_owner, trace->cpu) = NULL;
}

/* Context switches start and stop the trace. */
static bool is_shared(const struct pt_trace *pt)
{
	return container_of(pt, const struct ptkit_trace, pt)->follow || pt->bts;
}

static void lock_units(void)
{
	cpus_read_lock();
	mutex_lock(&units_lock);
}

static void unlock_units(void)
{
	mutex_unlock(&units_lock);
	cpus_read_unlock();
}

const struct pt_units ptkit_units = {
	.stride = sizeof(struct ptkit_trace),
	.lock = lock_units,
	.unlock = unlock_units,
	.own = own,
	.disown = disown,
	.load = load,
	.unload = unload,
	.is_shared = is_shared,
};

static bool is_refused(const struct ptkit_trace *trace)
{
	return trace->pt.started && !trace->pt.bts && !trace->roams && cpu_online(trace->cpu) &&
	       ptkit_is_refused(trace->cpu);
}

static bool all_are_refused(const struct ptkit_trace *traces, unsigned int count)
{
	unsigned int i;

	for (i = 0; i < count; i++) {
		if (!is_refused(&traces[i]))
			return false;
	}
	return true;
}

int ptkit_units_start(struct ptkit_trace *traces, unsigned int count, const struct pt_state *state)
{
	unsigned int i;
	int error;

	/* This may take long: other sessions have to go on. */
	for (i = 0; i < count; i++) {
		error = ptkit_memory_clear(&traces[i].pt.memory);
		if (error)
			return error;
	}
	error = ptkit_errno(pt_units_start(&ptkit_units, &traces->pt, count, state, NULL));
	/* Without the lock: a processor that goes offline meanwhile is not refused. */
	if (error || !all_are_refused(traces, count))
		return error;
	pt_units_stop(&ptkit_units, &traces->pt, count);
	return -EBUSY;
}

void ptkit_units_status(struct ptkit_trace *trace, struct ptkit_status *status)
{
	lock_units();
	if (trace->pt.wakes_up && trace->pt.running && trace->pt.head == trace->reported)
		call(trace, serve_here);
	trace->reported = trace->pt.head;
	pt_trace_status(&trace->pt, status);
	if (!trace->roams && !cpu_online(trace->cpu))
		status->flags |= PTKIT_STATUS_OFFLINE;
	if (is_refused(trace))
		status->flags |= PTKIT_STATUS_REFUSED;
	status->error = ptkit_errno(trace->pt.error);
	if (!status->error)
		status->error = ptkit_follow_error(trace->follow);
	unlock_units();
}

/*
 * Both run on the processor that goes online or offline, while tasks can run there. Context
 * switches go on after go_offline(), until the processor is gone. No trace may start there any
 * more.
 */
static int come_online(unsigned int cpu)
{
	struct ptkit_trace *trace;

	if (!ptkit_caps_hold()) {
		pr_warn("CPU %u lacks what others have: not traced\n", cpu);
		return 0;
	}
	mutex_lock(&units_lock);
	ptkit_reserve_renew(cpu);
	this_cpu_write(unit_usable, true);
	trace = per_cpu(unit_owner, cpu);
	if (trace && trace->pt.wanted) {
		load(&trace->pt);
		if (trace->pt.error)
			wake_up_interruptible(trace->wait);
	}
	mutex_unlock(&units_lock);
	return 0;
}

static void go_here(void *unused)
{
	struct ptkit_trace *trace = this_cpu_read(unit_owner);

	this_cpu_write(unit_usable, false);
	if (trace)
		ptkit_unit_leave(trace);
}

void ptkit_units_shut_down(void)
{
	on_each_cpu(go_here, NULL, 1);
}

static int go_offline(unsigned int cpu)
{
	mutex_lock(&units_lock);
	smp_call_function_single(cpu, go_here, NULL, 1);
	ptkit_reserve_drop(cpu);
	mutex_unlock(&units_lock);
	return 0;
}

bool ptkit_units_any_owner(void)
{
	unsigned int cpu;

	for_each_possible_cpu(cpu) {
		if (per_cpu(unit_owner, cpu))
			return true;
	}
	return false;
}

int ptkit_units_init(void)
{
	int state;
	int error = ptkit_interrupts_init();

	if (error)
		return error;
	ptkit_reserve_init();
	state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "ptkit:online", come_online, go_offline);
	if (state < 0) {
		ptkit_interrupts_exit();
		return state;
	}
	hotplug_state = state;
	return 0;
}

void ptkit_units_exit(void)
{
	cpuhp_remove_state(hotplug_state);
	ptkit_interrupts_exit();
}
