// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Which session traces on which processor, and what happens when processors come and go.
 *
 * Between two stretches of tracing nothing of ours stays in the registers: a pause reads them back,
 * and going on loads them again. So whoever else uses the unit meanwhile does no harm, and is seen.
 * What cannot be guarded: somebody who sets TraceEn without looking whether it is set, and perf,
 * which looks, but does not know of us while we pause.
 *
 * Lock order: a session's lock, the processors' (cpus_read_lock), `units_lock`. No user memory is
 * touched under the latter two.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/cpu.h>
#include <linux/cpuhotplug.h>
#include <linux/errno.h>
#include <linux/printk.h>
#include <linux/smp.h>

#include "ptkit.h"
#include "ptkit/rtit_regs.h"

static DEFINE_MUTEX(units_lock);
static DEFINE_PER_CPU(struct ptkit_trace *, unit_owner);
static enum cpuhp_state hotplug_state;

static int to_errno(int error)
{
	switch (error) {
	case 0:
		return 0;
	case PT_E_BUSY:
		return -EBUSY;
	case PT_E_INVALID:
		return -EINVAL;
	default:
		return -EIO;
	}
}

/* The two that run on the trace's own processor, interrupts off. */
static void load_here(void *argument)
{
	struct ptkit_trace *trace = argument;

	trace->error = to_errno(pt_seq_start(&ptkit_machine.ops, &trace->state));
	trace->running = !trace->error;
}

static void unload_here(void *argument)
{
	struct ptkit_trace *trace = argument;

	trace->error = to_errno(pt_seq_stop(&ptkit_machine.ops, &trace->state));
	trace->running = trace->error; /* it may still write to our memory */
}

/* What was read back becomes a position. */
static void settle(struct ptkit_trace *trace)
{
	const struct ptkit_memory *memory = &trace->memory;

	if (!trace->error)
		trace->error = ptkit_memory_position(memory, &trace->state, &trace->position);
	if (trace->error)
		return;
	if (trace->ring)
		trace->lapped = trace->lapped || ptkit_memory_used_behind(memory, trace->position);
	else
		trace->full = trace->position == memory->bytes;
}

static void unload(struct ptkit_trace *trace)
{
	if (!trace->running)
		return;
	/* Fails only if the processor is offline, and then its callback did it. */
	if (!smp_call_function_single(trace->cpu, unload_here, trace, 1))
		settle(trace);
}

static int load(struct ptkit_trace *trace)
{
	if (trace->running || trace->full || !cpu_online(trace->cpu))
		return 0;
	smp_call_function_single(trace->cpu, load_here, trace, 1);
	return trace->error;
}

static int begin(struct ptkit_trace *trace, const struct pt_state *state)
{
	trace->state = *state;
	trace->error = ptkit_memory_begin(&trace->memory, &trace->state);
	if (trace->error)
		return trace->error;
	ptkit_memory_clear(&trace->memory);
	trace->position = 0;
	trace->lapped = false;
	trace->full = false;
	return load(trace);
}

static int release(struct ptkit_trace *trace)
{
	if (!trace->started)
		return -EINVAL;
	trace->wanted = false;
	unload(trace);
	if (trace->running)
		return trace->error;
	per_cpu(unit_owner, trace->cpu) = NULL;
	trace->started = false;
	return 0;
}

static int acquire(struct ptkit_trace *trace, const struct pt_state *state)
{
	int error;

	if (per_cpu(unit_owner, trace->cpu))
		return -EBUSY;
	per_cpu(unit_owner, trace->cpu) = trace;
	trace->started = true;
	trace->wanted = true;
	error = begin(trace, state);
	if (error)
		release(trace);
	return error;
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

int ptkit_units_start(struct ptkit_trace *traces, unsigned int count, const struct pt_state *state)
{
	unsigned int i;
	int error = 0;

	lock_units();
	for (i = 0; i < count && !error; i++)
		error = traces[i].started ? -EBUSY : acquire(&traces[i], state);
	if (error) {
		/* The last one failed; it is as before. */
		for (i--; i > 0; i--)
			release(&traces[i - 1]);
	}
	unlock_units();
	return error;
}

int ptkit_units_stop(struct ptkit_trace *traces, unsigned int count)
{
	bool any = false;
	unsigned int i;
	int error = 0;

	lock_units();
	for (i = 0; i < count; i++) {
		int failed;

		if (!traces[i].started)
			continue;
		any = true;
		failed = release(&traces[i]);
		error = error ? error : failed;
	}
	unlock_units();
	return any ? error : -EINVAL;
}

int ptkit_units_pause(struct ptkit_trace *traces, unsigned int count)
{
	unsigned int i;
	int error = 0;

	lock_units();
	for (i = 0; i < count; i++) {
		struct ptkit_trace *trace = &traces[i];

		if (!trace->started) {
			error = -EINVAL;
			continue;
		}
		trace->wanted = false;
		unload(trace);
		if (!error)
			error = trace->error;
	}
	unlock_units();
	return error;
}

int ptkit_units_resume(struct ptkit_trace *traces, unsigned int count, bool restart)
{
	unsigned int i;
	int error = 0;

	lock_units();
	for (i = 0; i < count; i++) {
		struct ptkit_trace *trace = &traces[i];
		int failed = -EINVAL;

		if (trace->started) {
			trace->wanted = true;
			if (restart && !trace->running)
				trace->state.status = pt_status_restarted(trace->state.status);
			failed = load(trace);
		}
		if (!error)
			error = failed;
	}
	unlock_units();
	return error;
}

void ptkit_units_status(struct ptkit_trace *trace, struct ptkit_status *status)
{
	lock_units();
	status->flags = 0;
	if (trace->started)
		status->flags |= PTKIT_STATUS_STARTED;
	if (trace->running)
		status->flags |= PTKIT_STATUS_RUNNING;
	if (trace->lapped)
		status->flags |= PTKIT_STATUS_LAPPED;
	if (trace->full)
		status->flags |= PTKIT_STATUS_FULL;
	if (!cpu_online(trace->cpu))
		status->flags |= PTKIT_STATUS_OFFLINE;
	status->position = trace->position;
	status->rtit_status = trace->state.status;
	status->error = trace->error;
	unlock_units();
}

/* Both run on the processor that comes or goes, after others can and before they cannot run there.
 */
static int come_online(unsigned int cpu)
{
	struct ptkit_trace *trace;

	mutex_lock(&units_lock);
	trace = per_cpu(unit_owner, cpu);
	if (trace && trace->wanted && load(trace))
		wake_up_interruptible(trace->wait);
	mutex_unlock(&units_lock);
	return 0;
}

static int go_offline(unsigned int cpu)
{
	struct ptkit_trace *trace;

	mutex_lock(&units_lock);
	trace = per_cpu(unit_owner, cpu);
	if (trace)
		unload(trace);
	mutex_unlock(&units_lock);
	return 0;
}

void ptkit_units_give_up(struct ptkit_trace *traces, unsigned int count)
{
	unsigned int i;

	lock_units();
	for (i = 0; i < count; i++) {
		release(&traces[i]);
		if (!traces[i].running)
			continue;
		pr_err("CPU %u cannot be stopped: its buffer stays\n", traces[i].cpu);
		per_cpu(unit_owner, traces[i].cpu) = NULL;
	}
	unlock_units();
}

int ptkit_units_init(void)
{
	int state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "ptkit:online", come_online, go_offline);

	if (state < 0)
		return state;
	hotplug_state = state;
	return 0;
}

void ptkit_units_exit(void)
{
	cpuhp_remove_state(hotplug_state);
}
