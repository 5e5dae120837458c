// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * All functions but init, free, reset and exit run on the processor of the trace, with interrupts
 * off.
 *
 * perf and KVM use the same registers. perf keeps a copy of some of them, and does not write those
 * that its copy says are right. So the registers are read before a trace is loaded, and put back
 * when the trace is unloaded. perf does not look whether TraceEn is set.
 */
#include <linux/errno.h>
#include <linux/percpu.h>
#include <linux/string.h>

#include <asm/nmi.h>
#include <asm/tsc.h>

#include "common/pt_buffer.h"
#include "machine/errors.h"
#include "machine/machine.h"
#include "ptkit/rtit_regs.h"
#include "unit/bts.h"
#include "unit/running.h"

static void count_bytes(struct ptkit_trace *trace, u64 before)
{
	u64 size = trace->memory.bytes;
	u64 bytes = pt_bytes_between(size, before, trace->position);

	/* STOP limits the writer to one turn. A whole turn ends at the region with STOP. */
	if (!bytes && (trace->state.status & BIT(PT_STATUS_STOPPED)) &&
	    trace->head + size == trace->limit)
		bytes = size;
	WRITE_ONCE(trace->head, trace->head + bytes);
	if ((trace->state.status & BIT(PT_STATUS_STOPPED)) && trace->head == trace->limit)
		ptkit_count_stop(trace);
}

/*
 * Output registers that do not point into the buffer belong to another user of the unit. The
 * driver must not load them again: after PTKIT_RESUME tracing continues at the last stop.
 */
static int find_position(struct ptkit_trace *trace)
{
	u64 position;
	int error = ptkit_memory_position(&trace->memory, &trace->state, &position);

	if (!error)
		trace->position = position;
	else if (ptkit_memory_output(&trace->memory, trace->position, &trace->state))
		ptkit_memory_output(&trace->memory, 0, &trace->state);
	return error;
}

/* Computes the position and the fill state of the buffer from the registers read back. */
static void settle(struct ptkit_trace *trace)
{
	struct ptkit_memory *memory = &trace->memory;
	u64 before = trace->position;

	if (!trace->error && (trace->state.status & BIT(PT_STATUS_ERROR)))
		trace->error = -EIO;
	if (!trace->error)
		trace->error = find_position(trace);
	if (trace->error)
		return;
	if (trace->wakes_up) {
		/* After STOP the offset is the end of the region. */
		trace->position %= memory->bytes;
		count_bytes(trace, before);
	} else if (trace->ring) {
		trace->lapped = trace->lapped || ptkit_memory_used_from(memory, trace->position);
	} else {
		trace->full = trace->position == memory->bytes;
	}
}

/*
 * VMXON clears TraceEn on a processor that cannot trace in VMX operation. Other software may clear
 * it, too. The end of a buffer, a TraceStop range and errors do not clear it; STATUS reports them.
 */
static bool is_cleared(void)
{
	u64 ctl;

	return !ptkit_machine.ops.read(ptkit_machine.ops.ctx, PT_MSR_RTIT_CTL, &ctl) &&
	       !(ctl & BIT_ULL(PT_CTL_TRACE_EN));
}

/*
 * Free room ends with the last region before the one that has the reader's tail. The limit only
 * grows, as the tail does.
 */
static void move_limit(struct ptkit_trace *trace, u64 tail)
{
	struct ptkit_memory *memory = &trace->memory;
	u64 begin;

	trace->error =
		ptkit_errno(pt_topa_stop_before(&memory->topa, tail % memory->bytes, &begin));
	if (trace->error)
		return;
	trace->limit = tail - tail % memory->bytes + memory->bytes + begin;
	trace->limit_tail = tail;
}

/* Moves STOP to the end of the free room; false if there is no free room. */
static bool make_room(struct ptkit_trace *trace)
{
	u64 tail = READ_ONCE(trace->tail);
	bool at_limit = trace->head == trace->limit;

	if (tail != trace->limit_tail)
		move_limit(trace, tail);
	trace->full = trace->head >= trace->limit;
	if (trace->full || trace->error)
		return false;
	if (at_limit) {
		trace->state.status = pt_status_restarted(trace->state.status);
		trace->error = ptkit_memory_output(&trace->memory, trace->position, &trace->state);
	}
	return !trace->error;
}

/* The registers as the last user of the trace unit left them. */
struct found {
	struct pt_state registers;
	const struct ptkit_trace *trace; /* that was loaded afterwards */
};

static DEFINE_PER_CPU(struct found, found_here);

/*
 * A trace unit may keep state besides its registers, such as the last IP that it wrote. If another
 * trace or tracer used the unit last, that state belongs to the other one. Then this trace begins
 * with a PSB, which resets the state: clearing PacketByteCnt requests it.
 */
static void keep_registers(struct ptkit_trace *trace)
{
	u64 count = (BIT_ULL(PT_STATUS_PACKET_BYTE_COUNT_WIDTH) - 1)
		    << PT_STATUS_PACKET_BYTE_COUNT_SHIFT;
	struct found *found = this_cpu_ptr(&found_here);
	struct pt_state now = {};

	trace->error = ptkit_errno(pt_seq_keep(&ptkit_machine.ops, &trace->state, &now));
	if (trace->cpu != smp_processor_id() || found->trace != trace ||
	    memcmp(&now, &found->registers, sizeof(now)))
		trace->state.status &= ~count;
	found->registers = now;
	found->trace = trace;
}

static void put_registers_back(const struct ptkit_trace *trace)
{
	pt_seq_put_back(&ptkit_machine.ops, &trace->state, this_cpu_ptr(&found_here.registers));
}

/* The trace was loaded, and is paused. */
static void end_use(struct ptkit_trace *trace)
{
	const struct pt_ops *ops = &ptkit_machine.ops;
	u64 base;

	/* Another user may have loaded its own registers since. */
	if (!ops->read(ops->ctx, PT_MSR_RTIT_OUTPUT_BASE, &base) &&
	    ptkit_memory_owns(&trace->memory, base))
		put_registers_back(trace);
}

static void set_running(struct ptkit_trace *trace)
{
	trace->cpu = smp_processor_id();
	if (trace->wakes_up)
		ptkit_machine.arm_interrupt();
	trace->error = ptkit_errno(pt_seq_start(&ptkit_machine.ops, &trace->state));
	trace->running = !trace->error;
	if (trace->error == -EIO)
		put_registers_back(trace);
	if (trace->error)
		irq_work_queue(&trace->work);
}

/*
 * An NMI interrupts these functions although interrupts are off. So they set `at_work`; the handler
 * then only sets `missed`, and end_work() serves the interrupt.
 */
struct guard {
	struct ptkit_trace *trace; /* runs here, with interrupts */
	bool at_work;
	bool missed;
	u64 late_until; /* TSC; until then an interrupt may come that is acknowledged already */
};

static DEFINE_PER_CPU(struct guard, guards);

static void record_branches(struct ptkit_trace *trace)
{
	if (!ptkit_bts_make_room(trace)) {
		if (!trace->stops || trace->stopped_at[0] != trace->head)
			ptkit_count_stop(trace);
		return;
	}
	if (trace->interrupts)
		ptkit_machine.arm_interrupt();
	trace->error = ptkit_bts_start(trace);
	trace->running = !trace->error;
	if (trace->error)
		irq_work_queue(&trace->work);
}

/* The index has reached the threshold. */
static void turn_over_branches(struct ptkit_trace *trace)
{
	if (!ptkit_bts_pends(trace))
		return;
	trace->error = ptkit_bts_stop(trace);
	trace->running = trace->error;
	if (!trace->error && trace->wanted)
		record_branches(trace);
	if (!trace->running)
		ptkit_machine.arm_interrupt();
}

/* Moves STOP, and continues tracing. */
static void turn_over(struct ptkit_trace *trace)
{
	bool cleared = is_cleared();

	trace->error = ptkit_errno(pt_seq_serve(&ptkit_machine.ops, &trace->state));
	trace->running = trace->error;
	settle(trace);
	if (cleared)
		ptkit_note_cleared(trace);
	if (!trace->error && trace->wanted && make_room(trace)) {
		set_running(trace);
		return;
	}
	if (!trace->running)
		end_use(trace);
	ptkit_machine.arm_interrupt();
}

static void take_interrupt(struct ptkit_trace *trace)
{
	if (trace->bts)
		turn_over_branches(trace);
	else
		turn_over(trace);
	if (!trace->running)
		this_cpu_write(guards.trace, NULL);
	irq_work_queue(&trace->work);
}

/* The interrupt is acknowledged afterwards, but may not be delivered yet. */
static void expect_late_interrupt(void)
{
	this_cpu_write(guards.late_until, rdtsc() + ptkit_machine.late_ticks());
	barrier();
}

static void was_acknowledged(void)
{
	barrier();
	if (this_cpu_read(guards.missed)) {
		this_cpu_write(guards.late_until, 0);
		ptkit_machine.arm_interrupt();
	}
}

/* The interrupt that comes with it may be delivered later. */
static void take_early(struct ptkit_trace *trace)
{
	expect_late_interrupt();
	take_interrupt(trace);
	was_acknowledged();
}

static void begin_work(struct ptkit_trace *trace)
{
	this_cpu_write(guards.at_work, true);
	barrier();
	if (trace->interrupts)
		this_cpu_write(guards.trace, trace);
}

static void end_work(struct ptkit_trace *trace)
{
	if (!trace->running)
		this_cpu_write(guards.trace, NULL);
	for (;;) {
		barrier();
		this_cpu_write(guards.at_work, false);
		barrier();
		if (!this_cpu_read(guards.missed))
			return;
		this_cpu_write(guards.at_work, true);
		barrier();
		this_cpu_write(guards.missed, false);
		if (trace->running)
			take_early(trace);
	}
}

static bool interrupt_pends(const struct ptkit_trace *trace)
{
	u64 status;

	if (trace->bts)
		return ptkit_bts_pends(trace);
	if (ptkit_machine.ops.read(ptkit_machine.ops.ctx, PT_MSR_PERF_GLOBAL_STATUS, &status))
		return false;
	return status & BIT_ULL(PT_PERF_GLOBAL_TRACE_TOPA_PMI);
}

/* Whether the unit traces no more until it is served. */
static bool has_stopped(const struct ptkit_trace *trace)
{
	u64 status;

	if (trace->bts ||
	    ptkit_machine.ops.read(ptkit_machine.ops.ctx, PT_MSR_RTIT_STATUS, &status))
		return false;
	return status & (BIT(PT_STATUS_STOPPED) | BIT(PT_STATUS_ERROR));
}

/* Runs before perf's handler, which would handle the interrupt as one of perf's. */
static int handle_interrupt(unsigned int command, struct pt_regs *registers)
{
	struct ptkit_trace *trace = this_cpu_read(guards.trace);

	if (trace && interrupt_pends(trace)) {
		if (this_cpu_read(guards.at_work))
			this_cpu_write(guards.missed, true);
		else
			take_interrupt(trace);
		return NMI_HANDLED;
	}
	if (rdtsc() >= this_cpu_read(guards.late_until))
		return NMI_DONE;
	this_cpu_write(guards.late_until, 0);
	ptkit_machine.arm_interrupt();
	return NMI_HANDLED;
}

/*
 * Runs after perf's handler. That one acknowledges interrupts of the trace unit, too, if they come
 * while it handles one of perf's; no other NMI follows. While the driver is at work,
 * handle_interrupt() has set `missed`, or the next PTKIT_STATUS finds that the unit has stopped.
 */
static int handle_taken_interrupt(unsigned int command, struct pt_regs *registers)
{
	struct ptkit_trace *trace = this_cpu_read(guards.trace);

	if (trace && !this_cpu_read(guards.at_work) && has_stopped(trace))
		take_early(trace);
	return NMI_DONE;
}

static void wake_up_readers(struct irq_work *work)
{
	struct ptkit_trace *trace = container_of(work, struct ptkit_trace, work);

	wake_up_interruptible(trace->wait);
}

void ptkit_trace_init(struct ptkit_trace *trace, unsigned int number, struct ptkit_follow *follow)
{
	trace->number = number;
	trace->cpu = number;
	trace->follow = follow;
	init_irq_work(&trace->work, wake_up_readers);
}

void ptkit_trace_free(struct ptkit_trace *trace)
{
	irq_work_sync(&trace->work);
	if (trace->running) {
		ptkit_memory_abandon(&trace->memory);
		ptkit_bts_abandon(trace);
		return;
	}
	ptkit_memory_free(&trace->memory);
	ptkit_bts_free(trace);
}

int ptkit_trace_reset(struct ptkit_trace *trace)
{
	pt_topa_do_not_stop(&trace->memory.topa);
	trace->limit = trace->memory.bytes;
	trace->limit_tail = U64_MAX; /* no region has STOP yet */
	trace->head = 0;
	trace->tail = 0;
	trace->stops = 0;
	trace->reported = U64_MAX;
	trace->position = 0;
	trace->lapped = false;
	trace->full = false;
	trace->clears = 0;
	if (trace->bts)
		return ptkit_bts_reset(trace);
	return ptkit_memory_output(&trace->memory, 0, &trace->state);
}

void ptkit_run(struct ptkit_trace *trace)
{
	begin_work(trace);
	if (trace->bts) {
		record_branches(trace);
	} else if (!trace->wakes_up || make_room(trace)) {
		keep_registers(trace);
		if (!trace->error)
			set_running(trace);
	}
	end_work(trace);
}

static void stop_tracing(struct ptkit_trace *trace)
{
	bool cleared = is_cleared();

	trace->error = ptkit_errno(pt_seq_stop(&ptkit_machine.ops, &trace->state));
	trace->running = trace->error; /* the unit may still write to the buffer */
	settle(trace);
	if (cleared)
		ptkit_note_cleared(trace);
	if (!trace->running)
		end_use(trace);
}

void ptkit_halt(struct ptkit_trace *trace)
{
	begin_work(trace);
	if (!trace->bts) {
		stop_tracing(trace);
	} else {
		trace->error = ptkit_bts_stop(trace);
		trace->running = trace->error;
	}
	if (trace->interrupts && interrupt_pends(trace)) {
		expect_late_interrupt();
		if (!trace->bts)
			ptkit_machine.ops.write(ptkit_machine.ops.ctx, PT_MSR_PERF_GLOBAL_OVF_CTRL,
						BIT_ULL(PT_PERF_GLOBAL_TRACE_TOPA_PMI));
		was_acknowledged();
		irq_work_queue(&trace->work);
	}
	end_work(trace);
}

void ptkit_serve(struct ptkit_trace *trace)
{
	/* A hypervisor that runs a guest has interrupts off: it does not hide TraceEn here. */
	begin_work(trace);
	if (trace->running &&
	    (interrupt_pends(trace) || has_stopped(trace) || (!trace->bts && is_cleared())))
		take_early(trace);
	end_work(trace);
}

bool ptkit_is_live(struct ptkit_trace *trace)
{
	const struct pt_ops *ops = &ptkit_machine.ops;
	u64 base;
	u64 ctl;

	return !trace->bts && !ops->read(ops->ctx, PT_MSR_RTIT_CTL, &ctl) &&
	       (ctl & BIT_ULL(PT_CTL_TRACE_EN)) &&
	       !ops->read(ops->ctx, PT_MSR_RTIT_OUTPUT_BASE, &base) &&
	       ptkit_memory_owns(&trace->memory, base);
}

void ptkit_forget(const struct ptkit_trace *trace)
{
	if (this_cpu_read(guards.trace) == trace)
		this_cpu_write(guards.trace, NULL);
}

int ptkit_interrupts_init(void)
{
	int error = register_nmi_handler(NMI_LOCAL, handle_interrupt, NMI_FLAG_FIRST, "ptkit");

	if (error)
		return error;
	error = register_nmi_handler(NMI_LOCAL, handle_taken_interrupt, 0, "ptkit_taken");
	if (error)
		unregister_nmi_handler(NMI_LOCAL, "ptkit");
	return error;
}

void ptkit_interrupts_exit(void)
{
	unregister_nmi_handler(NMI_LOCAL, "ptkit_taken");
	unregister_nmi_handler(NMI_LOCAL, "ptkit");
}
