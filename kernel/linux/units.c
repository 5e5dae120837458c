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

#include <asm/nmi.h>

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

static void count_bytes(struct ptkit_trace *trace, u64 before)
{
	u64 size = trace->memory.bytes;
	u64 bytes = pt_bytes_between(size, before, trace->position);

	/* More than one turn is not possible, for STOP is in the way; a whole one ends there. */
	if (!bytes && (trace->state.status & BIT(PT_STATUS_STOPPED)) &&
	    trace->head + size == trace->limit)
		bytes = size;
	WRITE_ONCE(trace->head, trace->head + bytes);
}

/* What was read back becomes a position. */
static void settle(struct ptkit_trace *trace)
{
	const struct ptkit_memory *memory = &trace->memory;
	u64 before = trace->position;

	if (!trace->error && (trace->state.status & BIT(PT_STATUS_ERROR)))
		trace->error = -EIO;
	if (!trace->error)
		trace->error = ptkit_memory_position(memory, &trace->state, &trace->position);
	if (trace->error)
		return;
	if (trace->wakes_up) {
		/* A region that ends with STOP is left at its end. */
		trace->position %= memory->bytes;
		count_bytes(trace, before);
	} else if (trace->ring) {
		trace->lapped = trace->lapped || ptkit_memory_used_behind(memory, trace->position);
	} else {
		trace->full = trace->position == memory->bytes;
	}
}

static void mark_limit(const struct ptkit_trace *trace, bool on)
{
	const struct ptkit_memory *memory = &trace->memory;

	pt_topa_mark(&memory->topa, (trace->limit - 1) % memory->bytes, PT_TOPA_STOP, on);
}

/* Moves STOP to the end of the room that there is now; false if there is none. */
static bool make_room(struct ptkit_trace *trace)
{
	const struct ptkit_memory *memory = &trace->memory;
	u64 tail = READ_ONCE(trace->tail);
	u64 limit = tail - tail % memory->bytes + memory->bytes +
		    ptkit_memory_region_begin(memory, tail % memory->bytes);
	bool at_limit = trace->head == trace->limit;

	trace->full = trace->head >= limit;
	if (trace->full) {
		trace->stops++;
		return false;
	}
	mark_limit(trace, false);
	trace->limit = limit;
	mark_limit(trace, true);
	if (at_limit)
		trace->state.status = pt_status_restarted(trace->state.status);
	trace->error = ptkit_memory_output(memory, trace->position, &trace->state);
	return !trace->error;
}

/* On the trace's own processor, interrupts off. */
static void set_running(struct ptkit_trace *trace)
{
	if (trace->wakes_up)
		ptkit_machine.arm_interrupt();
	trace->error = to_errno(pt_seq_start(&ptkit_machine.ops, &trace->state));
	trace->running = !trace->error;
}

static void take_interrupt(struct ptkit_trace *trace)
{
	bool pending;
	int error = pt_seq_interrupt(&ptkit_machine.ops, &trace->state, &pending);

	if (!pending)
		return;
	trace->error = to_errno(error);
	trace->running = trace->error;
	settle(trace);
	if (!trace->error && trace->wanted && make_room(trace))
		set_running(trace);
	else
		ptkit_machine.arm_interrupt();
	irq_work_queue(&trace->work);
}

/*
 * Handlers of interrupts interrupt also where interrupts are off: the functions that follow say
 * that they are at work, and serve what came meanwhile.
 */
struct guard {
	struct ptkit_trace *trace; /* that interrupts are for */
	bool at_work;
	bool missed;
};

static DEFINE_PER_CPU(struct guard, guards);

static void begin_work(void)
{
	this_cpu_write(guards.at_work, true);
	barrier();
}

static void end_work(struct ptkit_trace *trace)
{
	struct ptkit_trace *served = trace->wakes_up ? trace : NULL;

	this_cpu_write(guards.trace, served);
	barrier();
	if (this_cpu_read(guards.missed) && trace->running)
		take_interrupt(trace);
	this_cpu_write(guards.missed, false);
	this_cpu_write(guards.at_work, false);
}

static bool interrupt_pends(void)
{
	u64 status;

	if (ptkit_machine.ops.read(ptkit_machine.ops.ctx, PT_MSR_PERF_GLOBAL_STATUS, &status))
		return false;
	return status & BIT_ULL(PT_PERF_GLOBAL_TRACE_TOPA_PMI);
}

/* Before perf's handler, which would take the interrupt for one of its own. */
static int handle_interrupt(unsigned int command, struct pt_regs *registers)
{
	struct ptkit_trace *trace = this_cpu_read(guards.trace);

	if (!trace || !interrupt_pends())
		return NMI_DONE;
	if (this_cpu_read(guards.at_work))
		this_cpu_write(guards.missed, true);
	else
		take_interrupt(trace);
	return NMI_HANDLED;
}

static void wake_up_readers(struct irq_work *work)
{
	struct ptkit_trace *trace = container_of(work, struct ptkit_trace, work);

	wake_up_interruptible(trace->wait);
}

void ptkit_trace_init(struct ptkit_trace *trace, unsigned int cpu)
{
	trace->cpu = cpu;
	init_irq_work(&trace->work, wake_up_readers);
}

static void load_here(void *argument)
{
	struct ptkit_trace *trace = argument;

	begin_work();
	if (!trace->running && (!trace->wakes_up || make_room(trace)))
		set_running(trace);
	end_work(trace);
}

static void acknowledge(void)
{
	ptkit_machine.ops.write(ptkit_machine.ops.ctx, PT_MSR_PERF_GLOBAL_OVF_CTRL,
				BIT_ULL(PT_PERF_GLOBAL_TRACE_TOPA_PMI));
	ptkit_machine.arm_interrupt();
}

static void unload_here(void *argument)
{
	struct ptkit_trace *trace = argument;

	begin_work();
	if (trace->running) {
		trace->error = to_errno(pt_seq_stop(&ptkit_machine.ops, &trace->state));
		trace->running = trace->error; /* it may still write to our memory */
		settle(trace);
		if (trace->wakes_up && interrupt_pends())
			acknowledge();
	}
	end_work(trace);
}

/* Fails only if the processor is offline, and then its callback did it. */
static void unload(struct ptkit_trace *trace)
{
	smp_call_function_single(trace->cpu, unload_here, trace, 1);
}

static int load(struct ptkit_trace *trace)
{
	if ((trace->full && !trace->wakes_up) || !cpu_online(trace->cpu))
		return 0;
	smp_call_function_single(trace->cpu, load_here, trace, 1);
	return trace->error;
}

static int begin(struct ptkit_trace *trace, const struct pt_state *state)
{
	trace->state = *state;
	trace->error = ptkit_memory_output(&trace->memory, 0, &trace->state);
	if (trace->error)
		return trace->error;
	ptkit_memory_clear(&trace->memory);
	if (trace->wakes_up && trace->limit)
		mark_limit(trace, false);
	trace->limit = trace->memory.bytes;
	trace->head = 0;
	trace->tail = 0;
	trace->stops = 0;
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
	per_cpu(guards.trace, trace->cpu) = NULL;
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

int ptkit_units_consume(struct ptkit_trace *trace, u64 tail)
{
	int error = 0;

	lock_units();
	if (!trace->wakes_up || tail < trace->tail || tail > READ_ONCE(trace->head))
		error = -EINVAL;
	else
		WRITE_ONCE(trace->tail, tail);
	/* A running one looks at the next interrupt. */
	if (!error && trace->wanted)
		error = load(trace);
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
	status->head = trace->head;
	status->tail = trace->tail;
	status->stops = trace->stops;
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
		per_cpu(guards.trace, traces[i].cpu) = NULL;
	}
	unlock_units();
}

int ptkit_units_init(void)
{
	int state;
	int error = register_nmi_handler(NMI_LOCAL, handle_interrupt, NMI_FLAG_FIRST, "ptkit");

	if (error)
		return error;
	state = cpuhp_setup_state(CPUHP_AP_ONLINE_DYN, "ptkit:online", come_online, go_offline);
	if (state < 0) {
		unregister_nmi_handler(NMI_LOCAL, "ptkit");
		return state;
	}
	hotplug_state = state;
	return 0;
}

void ptkit_units_exit(void)
{
	cpuhp_remove_state(hotplug_state);
	unregister_nmi_handler(NMI_LOCAL, "ptkit");
}
