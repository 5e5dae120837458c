// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * All functions but init, free, reset and exit run on the processor of the trace, with interrupts
 * off.
 *
 * While tracing is paused, the registers hold no state that the driver needs: a pause reads them
 * back, and resuming loads them again. So the driver detects another user of the trace unit, and
 * both traces stay intact. The driver cannot guard against two users: a tracer that sets TraceEn
 * without reading it before, and perf, which reads TraceEn, but cannot see a paused trace of the
 * driver.
 */
#include <linux/errno.h>
#include <linux/percpu.h>

#include <asm/nmi.h>

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
static void check_whether_cleared(struct ptkit_trace *trace)
{
	u64 ctl;

	if (ptkit_machine.ops.read(ptkit_machine.ops.ctx, PT_MSR_RTIT_CTL, &ctl))
		return;
	if (!(ctl & BIT_ULL(PT_CTL_TRACE_EN)))
		WRITE_ONCE(trace->cleared, true);
}

static void mark_limit(const struct ptkit_trace *trace, bool on)
{
	const struct ptkit_memory *memory = &trace->memory;

	pt_topa_mark(&memory->topa, (trace->limit - 1) % memory->bytes, PT_TOPA_STOP, on);
}

/* Free room ends with the last region before the one that has the reader's tail. */
static u64 find_limit(const struct ptkit_trace *trace, u64 tail)
{
	const struct ptkit_memory *memory = &trace->memory;

	if (tail == trace->limit_tail)
		return trace->limit;
	return tail - tail % memory->bytes + memory->bytes +
	       ptkit_memory_region_begin(memory, tail % memory->bytes);
}

/* Moves STOP to the end of the free room; false if there is no free room. */
static bool make_room(struct ptkit_trace *trace)
{
	u64 tail = READ_ONCE(trace->tail);
	u64 limit = find_limit(trace, tail);
	bool at_limit = trace->head == trace->limit;

	if (trace->head >= limit) {
		trace->stops += !trace->full;
		trace->full = true;
		return false;
	}
	trace->full = false;
	if (tail == trace->limit_tail)
		return true;
	mark_limit(trace, false);
	trace->limit = limit;
	trace->limit_tail = tail;
	mark_limit(trace, true);
	if (at_limit)
		trace->state.status = pt_status_restarted(trace->state.status);
	trace->error = ptkit_memory_output(&trace->memory, trace->position, &trace->state);
	return !trace->error;
}

/*
 * A trace unit may keep state besides its registers, such as the last IP that it wrote. If another
 * trace or tracer used the unit last, that state belongs to the other trace. Then this trace begins
 * with a PSB, which resets the state: clearing PacketByteCnt requests it.
 */
static void begin_anew_if_used(struct ptkit_trace *trace, unsigned int cpu)
{
	const struct pt_ops *ops = &ptkit_machine.ops;
	u64 count = (BIT_ULL(PT_STATUS_PACKET_BYTE_COUNT_WIDTH) - 1)
		    << PT_STATUS_PACKET_BYTE_COUNT_SHIFT;
	u64 base = 0;
	u64 mask_ptrs = 0;

	if (cpu == trace->cpu && !ops->read(ops->ctx, PT_MSR_RTIT_OUTPUT_BASE, &base) &&
	    !ops->read(ops->ctx, PT_MSR_RTIT_OUTPUT_MASK_PTRS, &mask_ptrs) &&
	    base == trace->state.output_base && mask_ptrs == trace->state.output_mask_ptrs)
		return;
	trace->state.status &= ~count;
}

static void set_running(struct ptkit_trace *trace)
{
	unsigned int cpu = smp_processor_id();

	begin_anew_if_used(trace, cpu);
	trace->cpu = cpu;
	if (trace->wakes_up)
		ptkit_machine.arm_interrupt();
	trace->error = ptkit_errno(pt_seq_start(&ptkit_machine.ops, &trace->state));
	trace->running = !trace->error;
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
	bool late; /* an interrupt was acknowledged before it was delivered */
};

static DEFINE_PER_CPU(struct guard, guards);

/* The buffer has reached its threshold. */
static void end_branches(struct ptkit_trace *trace)
{
	if (!ptkit_bts_pends(trace))
		return;
	trace->error = ptkit_bts_stop(trace);
	trace->running = trace->error;
	ptkit_machine.arm_interrupt();
}

/* Moves STOP, and continues tracing. */
static bool turn_over(struct ptkit_trace *trace)
{
	bool pending;
	int error;

	check_whether_cleared(trace);
	error = pt_seq_interrupt(&ptkit_machine.ops, &trace->state, &pending);
	if (!pending)
		return false;
	trace->error = ptkit_errno(error);
	trace->running = trace->error;
	settle(trace);
	if (!trace->error && trace->wanted && make_room(trace))
		set_running(trace);
	else
		ptkit_machine.arm_interrupt();
	return true;
}

static void take_interrupt(struct ptkit_trace *trace)
{
	if (trace->bts)
		end_branches(trace);
	else if (!turn_over(trace))
		return;
	if (!trace->running)
		this_cpu_write(guards.trace, NULL);
	irq_work_queue(&trace->work);
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
			take_interrupt(trace);
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

/* Runs before perf's handler, which would handle the interrupt as one of perf's. */
static int handle_interrupt(unsigned int command, struct pt_regs *registers)
{
	struct ptkit_trace *trace = this_cpu_read(guards.trace);

	if (!trace || !interrupt_pends(trace)) {
		if (!this_cpu_read(guards.late))
			return NMI_DONE;
		this_cpu_write(guards.late, false);
		ptkit_machine.arm_interrupt();
		return NMI_HANDLED;
	}
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
	if (trace->wakes_up && trace->limit)
		mark_limit(trace, false);
	trace->limit = trace->memory.bytes;
	trace->limit_tail = U64_MAX; /* no region has STOP yet */
	trace->head = 0;
	trace->tail = 0;
	trace->stops = 0;
	trace->position = 0;
	trace->lapped = false;
	trace->full = false;
	trace->cleared = false;
	if (trace->bts)
		return ptkit_bts_reset(trace);
	return ptkit_memory_output(&trace->memory, 0, &trace->state);
}

static void record_branches(struct ptkit_trace *trace)
{
	if (trace->interrupts)
		ptkit_machine.arm_interrupt();
	trace->error = ptkit_bts_start(trace);
	trace->running = !trace->error;
}

void ptkit_run(struct ptkit_trace *trace)
{
	begin_work(trace);
	if (trace->bts)
		record_branches(trace);
	else if (!trace->wakes_up || make_room(trace))
		set_running(trace);
	end_work(trace);
}

/* The interrupt may not be delivered yet. */
static void acknowledge(const struct ptkit_trace *trace)
{
	this_cpu_write(guards.late, true);
	barrier();
	if (!trace->bts)
		ptkit_machine.ops.write(ptkit_machine.ops.ctx, PT_MSR_PERF_GLOBAL_OVF_CTRL,
					BIT_ULL(PT_PERF_GLOBAL_TRACE_TOPA_PMI));
	barrier();
	if (this_cpu_read(guards.missed)) {
		this_cpu_write(guards.late, false);
		ptkit_machine.arm_interrupt();
	}
}

static void stop_tracing(struct ptkit_trace *trace)
{
	check_whether_cleared(trace);
	trace->error = ptkit_errno(pt_seq_stop(&ptkit_machine.ops, &trace->state));
	trace->running = trace->error; /* the unit may still write to the buffer */
	settle(trace);
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
		acknowledge(trace);
		irq_work_queue(&trace->work);
	}
	end_work(trace);
}

void ptkit_forget(const struct ptkit_trace *trace)
{
	if (this_cpu_read(guards.trace) == trace)
		this_cpu_write(guards.trace, NULL);
}

int ptkit_interrupts_init(void)
{
	return register_nmi_handler(NMI_LOCAL, handle_interrupt, NMI_FLAG_FIRST, "ptkit");
}

void ptkit_interrupts_exit(void)
{
	unregister_nmi_handler(NMI_LOCAL, "ptkit");
}
