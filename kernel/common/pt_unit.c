// SPDX-License-Identifier: MIT
#include "pt_unit.h"

#include "pt_branches.h"
#include "ptkit/rtit_regs.h"

#define NO_TAIL (~(uint64_t)0)

/*
 * PacketByteCnt. While it is clear, the unit begins with a PSB: the packets before are another
 * trace's, or some are missing.
 */
#define PACKET_BYTES                                                                               \
	((PT_BIT(PT_STATUS_PACKET_BYTE_COUNT_WIDTH) - 1) << PT_STATUS_PACKET_BYTE_COUNT_SHIFT)

/* 0: the access faulted. */
static uint64_t read_msr(const struct pt_unit *unit, uint32_t msr)
{
	uint64_t value;

	return unit->ops->read(unit->ops->ctx, msr, &value) ? 0 : value;
}

int pt_unit_reset(struct pt_trace *trace)
{
	pt_topa_do_not_stop(&trace->memory.topa);
	trace->limit = trace->memory.used;
	trace->limit_tail = NO_TAIL; /* no region has STOP yet */
	PT_WRITE_ONCE(trace->head, 0);
	PT_WRITE_ONCE(trace->tail, 0);
	trace->stops = 0;
	trace->position = 0;
	trace->lapped = false;
	trace->full = false;
	trace->clears = 0;
	if (trace->bts)
		return pt_branches_reset(trace);
	return pt_memory_output(&trace->memory, 0, &trace->state);
}

static void count_bytes(struct pt_trace *trace, uint64_t before)
{
	uint64_t size = trace->memory.used;
	uint64_t bytes = pt_bytes_between(size, before, trace->position);
	bool stopped = trace->state.status & PT_BIT(PT_STATUS_STOPPED);

	/* STOP limits the writer to one turn. A whole turn ends at the region with STOP. */
	if (!bytes && stopped && trace->head + size == trace->limit)
		bytes = size;
	PT_WRITE_ONCE(trace->head, trace->head + bytes);
	if (stopped && trace->head == trace->limit)
		pt_trace_count_stop(trace);
}

/*
 * Output registers that do not point into the buffer belong to another user of the unit. The driver
 * must not load them again: tracing continues at the last stop.
 */
static int find_position(struct pt_trace *trace)
{
	uint64_t position;
	int error = pt_memory_position(&trace->memory, &trace->state, &position);

	if (!error)
		trace->position = position;
	else if (pt_memory_output(&trace->memory, trace->position, &trace->state))
		pt_memory_output(&trace->memory, 0, &trace->state);
	return error;
}

/* Computes the position and the fill state of the buffer from the registers read back. */
static void settle(struct pt_trace *trace)
{
	struct pt_memory *memory = &trace->memory;
	uint64_t before = trace->position;

	if (!trace->error && (trace->state.status & PT_BIT(PT_STATUS_ERROR)))
		trace->error = PT_E_UNIT;
	if (!trace->error)
		trace->error = find_position(trace);
	if (trace->error)
		return;
	if (trace->wakes_up) {
		/* After STOP the offset is the end of the region. */
		trace->position %= memory->used;
		count_bytes(trace, before);
	} else if (trace->ring) {
		trace->lapped = trace->lapped || pt_memory_used_from(memory, trace->position);
	} else {
		trace->full = trace->position == memory->used;
	}
}

/*
 * Free room ends with the last region before the one that has the reader's tail. The limit only
 * grows, as the tail does.
 */
static void move_limit(struct pt_trace *trace, uint64_t tail)
{
	uint64_t size = trace->memory.used;
	uint64_t begin;

	trace->error = pt_topa_stop_before(&trace->memory.topa, tail % size, &begin);
	if (trace->error)
		return;
	trace->limit = tail - tail % size + size + begin;
	trace->limit_tail = tail;
}

/* Moves STOP to the end of the free room; false if there is no free room. */
static bool make_room(struct pt_trace *trace)
{
	uint64_t tail = PT_READ_ONCE(trace->tail);
	bool at_limit = trace->head == trace->limit;

	if (tail != trace->limit_tail)
		move_limit(trace, tail);
	trace->full = trace->head >= trace->limit;
	if (trace->full || trace->error)
		return false;
	if (at_limit) {
		trace->state.status = pt_status_restarted(trace->state.status) & ~PACKET_BYTES;
		trace->error = pt_memory_output(&trace->memory, trace->position, &trace->state);
	}
	return !trace->error;
}

bool pt_unit_has_room(struct pt_trace *trace)
{
	if (trace->error)
		return false;
	if (trace->bts)
		return pt_branches_make_room(trace);
	return trace->wakes_up ? make_room(trace) : !trace->full;
}

/*
 * A trace unit may keep state besides its registers, such as the last IP that it wrote. If another
 * trace or tracer used the unit last, that state belongs to the other one: this trace begins with a
 * PSB, which resets the state.
 */
static void keep_registers(struct pt_unit *unit, struct pt_trace *trace)
{
	struct pt_state now = {0};

	trace->error = pt_seq_keep(unit->ops, &trace->state, &now);
	if (trace->unit != unit || unit->after != trace ||
	    __builtin_memcmp(&now, &unit->found, sizeof(now)))
		trace->state.status &= ~PACKET_BYTES;
	unit->found = now;
	unit->after = trace;
}

bool pt_unit_prepare(struct pt_unit *unit, struct pt_trace *trace)
{
	if (!pt_unit_has_room(trace))
		return false;
	if (!trace->bts)
		keep_registers(unit, trace);
	return !trace->error;
}

void pt_unit_start(struct pt_unit *unit, struct pt_trace *trace)
{
	trace->unit = unit;
	trace->error = trace->bts ? pt_branches_start(unit, trace)
				  : pt_seq_start(unit->ops, &trace->state);
	trace->running = !trace->error;
	if (trace->error == PT_E_FAULT && !trace->bts)
		pt_seq_put_back(unit->ops, &trace->state, &unit->found);
}

bool pt_unit_stop(struct pt_unit *unit, struct pt_trace *trace, bool acknowledges)
{
	bool cleared = pt_unit_is_cleared(unit, trace);

	if (trace->bts)
		return pt_branches_stop(unit, trace);
	trace->error = acknowledges ? pt_seq_serve(unit->ops, &trace->state)
				    : pt_seq_stop(unit->ops, &trace->state);
	trace->running = trace->error; /* the unit may still write to the buffer */
	settle(trace);
	if (cleared) {
		trace->state.status &= ~PACKET_BYTES;
		pt_trace_count_clear(trace);
	}
	return cleared;
}

static bool is_loaded(const struct pt_unit *unit, struct pt_trace *trace)
{
	uint64_t base;

	return !trace->bts && !unit->ops->read(unit->ops->ctx, PT_MSR_RTIT_OUTPUT_BASE, &base) &&
	       pt_memory_owns(&trace->memory, base);
}

void pt_unit_leave(const struct pt_unit *unit, struct pt_trace *trace)
{
	if (!trace->running && is_loaded(unit, trace))
		pt_seq_put_back(unit->ops, &trace->state, &unit->found);
}

bool pt_unit_interrupts(const struct pt_unit *unit, const struct pt_trace *trace)
{
	if (trace->bts)
		return pt_branches_interrupt(trace->bts);
	return read_msr(unit, PT_MSR_PERF_GLOBAL_STATUS) & PT_BIT(PT_PERF_GLOBAL_TRACE_TOPA_PMI);
}

void pt_unit_acknowledge(const struct pt_unit *unit, const struct pt_trace *trace)
{
	if (!trace->bts)
		unit->ops->write(unit->ops->ctx, PT_MSR_PERF_GLOBAL_OVF_CTRL,
				 PT_BIT(PT_PERF_GLOBAL_TRACE_TOPA_PMI));
}

bool pt_unit_has_stopped(const struct pt_unit *unit, const struct pt_trace *trace)
{
	return !trace->bts && (read_msr(unit, PT_MSR_RTIT_STATUS) &
			       (PT_BIT(PT_STATUS_STOPPED) | PT_BIT(PT_STATUS_ERROR)));
}

bool pt_unit_is_cleared(const struct pt_unit *unit, const struct pt_trace *trace)
{
	uint64_t ctl;

	return !trace->bts && !unit->ops->read(unit->ops->ctx, PT_MSR_RTIT_CTL, &ctl) &&
	       !(ctl & PT_BIT(PT_CTL_TRACE_EN));
}

bool pt_unit_is_live(const struct pt_unit *unit, struct pt_trace *trace)
{
	return !trace->bts && (read_msr(unit, PT_MSR_RTIT_CTL) & PT_BIT(PT_CTL_TRACE_EN)) &&
	       is_loaded(unit, trace);
}
