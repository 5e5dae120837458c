// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * All functions but init, exit and reset run on the processor of the trace, and nothing of the
 * driver interrupts them: unlike Linux' NMI, the interrupt of performance monitoring waits while
 * interrupts are off.
 *
 * Others use the same registers: Windows' own Intel PT support, profilers, hypervisors. So the
 * registers are read before a trace is loaded, and put back when the trace is unloaded.
 */
#include "unit/running.h"

#include "common/pt_buffer.h"
#include "machine/machine.h"
#include "machine/pool.h"
#include "machine/reasons.h"
#include "ptkit/rtit_regs.h"
#include "unit/bts.h"

/* What this driver knows of a processor. */
struct unit {
	struct ptkit_trace *loaded; /* its registers are in the unit */
	struct pt_state found; /* the registers as the last user left them */
	const struct ptkit_trace *after; /* was loaded after them */
};

static struct unit *units; /* by processor */
static bool have_interrupts;
static bool re_arm;

/*
 * PacketByteCnt. While it is clear, the unit begins with a PSB: the packets before are another
 * trace's, or some are missing.
 */
#define PACKET_BYTES                                                                               \
	((PT_BIT(PT_STATUS_PACKET_BYTE_COUNT_WIDTH) - 1) << PT_STATUS_PACKET_BYTE_COUNT_SHIFT)

static struct unit *unit_here(void)
{
	return &units[ptkit_machine.cpu_here()];
}

static void count_bytes(struct ptkit_trace *trace, uint64_t before)
{
	uint64_t size = trace->memory.used;
	uint64_t bytes = pt_bytes_between(size, before, trace->position);
	bool stopped = trace->state.status & PT_BIT(PT_STATUS_STOPPED);

	/* STOP limits the writer to one turn. A whole turn ends at the region with STOP. */
	if (!bytes && stopped && trace->head + size == trace->limit)
		bytes = size;
	trace->head += bytes;
	if (stopped && trace->head == trace->limit)
		ptkit_count_stop(trace);
}

/*
 * Output registers that do not point into the buffer belong to another user of the unit. The driver
 * must not load them again: after PTKIT_WINDOWS_RESUME tracing continues at the last stop.
 */
static uint32_t find_position(struct ptkit_trace *trace)
{
	uint64_t position;
	uint32_t reason = ptkit_memory_position(&trace->memory, &trace->state, &position);

	if (!reason) {
		trace->position = position;
		return PTKIT_REASON_NONE;
	}
	if (ptkit_memory_output(&trace->memory, trace->position, &trace->state))
		ptkit_memory_output(&trace->memory, 0, &trace->state);
	return PTKIT_REASON_OWNER;
}

/* Computes the position and the fill state of the buffer from the registers read back. */
static void settle(struct ptkit_trace *trace)
{
	uint64_t before = trace->position;

	if (!trace->reason && (trace->state.status & PT_BIT(PT_STATUS_ERROR)))
		trace->reason = PTKIT_REASON_ERROR;
	if (!trace->reason)
		trace->reason = find_position(trace);
	if (trace->reason)
		return;
	if (trace->wakes_up) {
		/* After STOP the offset is the end of the region. */
		trace->position %= trace->memory.used;
		count_bytes(trace, before);
	} else if (trace->ring) {
		trace->lapped =
			trace->lapped || ptkit_memory_used_from(&trace->memory, trace->position);
	} else {
		trace->full = trace->position == trace->memory.used;
	}
}

/*
 * VMXON clears TraceEn on a processor that cannot trace in VMX operation. Other software may clear
 * it, too. The end of a buffer, a TraceStop range and errors do not clear it; STATUS reports them.
 */
static bool is_cleared(void)
{
	uint64_t ctl;

	return !ptkit_machine.ops.read(ptkit_machine.ops.ctx, PT_MSR_RTIT_CTL, &ctl) &&
	       !(ctl & PT_BIT(PT_CTL_TRACE_EN));
}

/*
 * Free room ends with the last region before the one that has the reader's tail. The limit only
 * grows, as the tail does.
 */
static void move_limit(struct ptkit_trace *trace, uint64_t tail)
{
	uint64_t size = trace->memory.used;
	uint64_t begin;

	if (pt_topa_stop_before(&trace->memory.topa, tail % size, &begin)) {
		trace->reason = PTKIT_REASON_ERROR;
		return;
	}
	trace->limit = tail - tail % size + size + begin;
	trace->limit_tail = tail;
}

/* Moves STOP to the end of the free room; false if there is no free room. */
static bool make_room(struct ptkit_trace *trace)
{
	uint64_t tail = trace->tail;
	bool at_limit = trace->head == trace->limit;

	if (tail != trace->limit_tail)
		move_limit(trace, tail);
	trace->full = trace->head >= trace->limit;
	if (trace->full || trace->reason)
		return false;
	if (at_limit) {
		trace->state.status = pt_status_restarted(trace->state.status) & ~PACKET_BYTES;
		trace->reason = ptkit_memory_output(&trace->memory, trace->position, &trace->state);
	}
	return !trace->reason;
}

static bool has_room(struct ptkit_trace *trace)
{
	return trace->wakes_up ? make_room(trace) : !trace->full;
}

/*
 * A trace unit may keep state besides its registers, such as the last IP that it wrote. If another
 * trace or tracer used the unit last, that state belongs to the other one: this trace begins with a
 * PSB, which resets the state.
 */
static void keep_registers(struct ptkit_trace *trace)
{
	struct unit *unit = unit_here();
	struct pt_state now = {0};

	trace->reason = ptkit_reason(pt_seq_keep(&ptkit_machine.ops, &trace->state, &now));
	if (unit->after != trace || memcmp(&now, &unit->found, sizeof(now)))
		trace->state.status &= ~PACKET_BYTES;
	unit->found = now;
	unit->after = trace;
}

static void put_registers_back(const struct ptkit_trace *trace)
{
	pt_seq_put_back(&ptkit_machine.ops, &trace->state, &unit_here()->found);
}

/* The trace was loaded, and is paused. */
static void end_use(struct ptkit_trace *trace)
{
	const struct pt_ops *ops = &ptkit_machine.ops;
	uint64_t base;

	/* Another user may have loaded its own registers since. */
	if (!ops->read(ops->ctx, PT_MSR_RTIT_OUTPUT_BASE, &base) &&
	    ptkit_memory_owns(&trace->memory, base))
		put_registers_back(trace);
}

static void set_running(struct ptkit_trace *trace)
{
	if (trace->wakes_up && re_arm)
		ptkit_machine.arm_interrupt();
	trace->reason = ptkit_reason(pt_seq_start(&ptkit_machine.ops, &trace->state));
	trace->running = !trace->reason;
	if (trace->reason == PTKIT_REASON_FAULT)
		put_registers_back(trace);
	if (trace->reason)
		ptkit_report(trace->waiter, PTKIT_EVENT_FULL);
}

static void record_branches(struct ptkit_trace *trace)
{
	if (!ptkit_bts_make_room(trace)) {
		if (!trace->stops || trace->stopped_at[0] != trace->head)
			ptkit_count_stop(trace);
		return;
	}
	if (!trace->ring && re_arm)
		ptkit_machine.arm_interrupt();
	trace->reason = ptkit_bts_start(trace);
	trace->running = !trace->reason;
	if (trace->reason)
		ptkit_report(trace->waiter, PTKIT_EVENT_FULL);
}

/* Hands what was recorded over, and goes on. */
static void turn_over_branches(struct ptkit_trace *trace)
{
	trace->reason = ptkit_bts_stop(trace);
	trace->running = trace->reason == PTKIT_REASON_FAULT;
	if (!trace->reason && trace->wanted)
		record_branches(trace);
}

/* The unit may still write to the buffer after a fault. */
static void stop_unit(struct ptkit_trace *trace,
		      int (*stop)(const struct pt_ops *ops, struct pt_state *state))
{
	bool cleared = is_cleared();

	trace->reason = ptkit_reason(stop(&ptkit_machine.ops, &trace->state));
	trace->running = trace->reason;
	settle(trace);
	if (!cleared)
		return;
	trace->state.status &= ~PACKET_BYTES;
	ptkit_note_cleared(trace);
	ptkit_report(trace->waiter, PTKIT_EVENT_CLEARED);
}

/* Moves STOP, and continues tracing. */
static void turn_over(struct ptkit_trace *trace)
{
	/* Without a PMU there is no interrupt to acknowledge. */
	stop_unit(trace, trace->wakes_up ? pt_seq_serve : pt_seq_stop);
	if (!trace->reason && trace->wanted && has_room(trace)) {
		set_running(trace);
		return;
	}
	if (!trace->running)
		end_use(trace);
}

/* With wake-ups; every tick writes some packets, which are not worth an event. */
static void report_data(struct ptkit_trace *trace, bool ends)
{
	uint64_t bytes = trace->head - trace->reported;

	if (!bytes || (!ends && bytes < trace->event_bytes))
		return;
	trace->reported = trace->head;
	ptkit_report(trace->waiter, PTKIT_EVENT_DATA);
}

static void hand_over(struct ptkit_trace *trace)
{
	if (trace->bts)
		turn_over_branches(trace);
	else
		turn_over(trace);
	if (!trace->running)
		unit_here()->loaded = NULL;
	report_data(trace, !trace->running);
	if (!trace->running)
		ptkit_report(trace->waiter, PTKIT_EVENT_FULL);
}

static bool interrupt_pends(const struct ptkit_trace *trace)
{
	const struct pt_ops *ops = &ptkit_machine.ops;
	uint64_t status;

	if (trace->bts)
		return ptkit_bts_pends(trace);
	return !ops->read(ops->ctx, PT_MSR_PERF_GLOBAL_STATUS, &status) &&
	       (status & PT_BIT(PT_PERF_GLOBAL_TRACE_TOPA_PMI));
}

/* Whether the unit traces no more until it is served. */
static bool has_stopped(void)
{
	const struct pt_ops *ops = &ptkit_machine.ops;
	uint64_t status;

	return !ops->read(ops->ctx, PT_MSR_RTIT_STATUS, &status) &&
	       (status & (PT_BIT(PT_STATUS_STOPPED) | PT_BIT(PT_STATUS_ERROR)));
}

/* At HIGH_LEVEL. What takes longer is the DPC's. Processors that came later are not traced. */
static void handle_interrupt(void)
{
	uint32_t cpu = ptkit_machine.cpu_here();
	struct ptkit_trace *trace = cpu < ptkit_machine.cpu_count() ? units[cpu].loaded : NULL;

	if (!trace)
		return;
	if (interrupt_pends(trace))
		hand_over(trace);
	else if (re_arm)
		ptkit_machine.arm_interrupt();
}

uint32_t ptkit_trace_reset(struct ptkit_trace *trace)
{
	pt_topa_do_not_stop(&trace->memory.topa);
	trace->limit = trace->memory.used;
	trace->limit_tail = UINT64_MAX; /* no region has STOP yet */
	trace->head = 0;
	trace->tail = 0;
	trace->reported = 0;
	trace->stops = 0;
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
	unit_here()->loaded = trace;
	if (trace->bts) {
		record_branches(trace);
	} else if (has_room(trace)) {
		keep_registers(trace);
		if (!trace->reason)
			set_running(trace);
	}
	if (!trace->running)
		unit_here()->loaded = NULL;
}

/* An interrupt that is not delivered yet finds no trace. */
static void acknowledge(void)
{
	ptkit_machine.ops.write(ptkit_machine.ops.ctx, PT_MSR_PERF_GLOBAL_OVF_CTRL,
				PT_BIT(PT_PERF_GLOBAL_TRACE_TOPA_PMI));
}

void ptkit_halt(struct ptkit_trace *trace)
{
	if (trace->bts) {
		trace->reason = ptkit_bts_stop(trace);
		trace->running = trace->reason == PTKIT_REASON_FAULT;
	} else {
		stop_unit(trace, pt_seq_stop);
		if (!trace->running)
			end_use(trace);
		if (trace->wakes_up && interrupt_pends(trace))
			acknowledge();
	}
	if (!trace->running)
		unit_here()->loaded = NULL;
	report_data(trace, true);
}

/*
 * With wake-ups the trace is always handed over: then a swallowed interrupt costs no packets, and a
 * machine where the interrupt comes once only needs none.
 */
static bool needs_service(struct ptkit_trace *trace)
{
	if (trace->bts)
		return ptkit_bts_pends(trace) || (trace->wakes_up && !ptkit_bts_is_empty(trace));
	return trace->wakes_up || has_stopped() || is_cleared();
}

void ptkit_serve(struct ptkit_trace *trace)
{
	if (trace->running && needs_service(trace))
		hand_over(trace);
}

bool ptkit_is_live(struct ptkit_trace *trace)
{
	const struct pt_ops *ops = &ptkit_machine.ops;
	uint64_t base;
	uint64_t ctl;

	return !trace->bts && !ops->read(ops->ctx, PT_MSR_RTIT_CTL, &ctl) &&
	       (ctl & PT_BIT(PT_CTL_TRACE_EN)) &&
	       !ops->read(ops->ctx, PT_MSR_RTIT_OUTPUT_BASE, &base) &&
	       ptkit_memory_owns(&trace->memory, base);
}

void ptkit_forget(const struct ptkit_trace *trace)
{
	if (unit_here()->loaded == trace)
		unit_here()->loaded = NULL;
}

bool ptkit_has_interrupts(void)
{
	return have_interrupts;
}

bool ptkit_re_arms(void)
{
	return re_arm;
}

bool ptkit_running_init(void)
{
	units = ptkit_allocate(ptkit_machine.cpu_count() * sizeof(*units));
	if (!units)
		return false;
	have_interrupts = NT_SUCCESS(ptkit_machine.take_interrupts(handle_interrupt));
	re_arm = have_interrupts && ptkit_machine.can_arm();
	return true;
}

void ptkit_running_exit(void)
{
	if (have_interrupts)
		ptkit_machine.release_interrupts();
	ptkit_free(units);
}
