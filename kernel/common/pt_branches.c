// SPDX-License-Identifier: MIT
#include "pt_branches.h"

#include "ptkit/rtit_regs.h"

#define RECORD_BYTES ((uint64_t)sizeof(struct pt_bts_record))

static uint64_t address_of(const void *object)
{
	return (uint64_t)(uintptr_t)object;
}

static uint64_t smaller(uint64_t one, uint64_t other)
{
	return one < other ? one : other;
}

void pt_branches_init(struct pt_trace *trace, struct pt_bts *bts, const struct ptkit_config *config)
{
	struct pt_memory *memory = &trace->memory;
	uint64_t records = memory->bytes / RECORD_BYTES;
	bool wraps = trace->wakes_up && memory->mirrored;

	bts->reserve = trace->ring ? 0 : records / 16;
	bts->wake_up = trace->wakes_up ? config->wake_up_bytes / RECORD_BYTES : records;
	bts->state.ds_area = address_of(&bts->area);
	bts->state.debugctl = pt_bts_debugctl(config->flags & PTKIT_TRACE_KERNEL,
					      config->flags & PTKIT_TRACE_USER, !trace->ring);
	memory->used = wraps ? memory->bytes : records * RECORD_BYTES;
	trace->bts = bts;
}

int pt_branches_reset(struct pt_trace *trace)
{
	const struct pt_memory *memory = &trace->memory;
	struct pt_bts *bts = trace->bts;

	return pt_bts_layout(&bts->area, address_of(memory->linear), memory->used, sizeof(uint64_t),
			     bts->reserve);
}

/* A mark at the beginning, a branch, and a mark at the end. */
static uint64_t least_records(const struct pt_trace *trace)
{
	return trace->bts->reserve + 3;
}

/* Bytes at the end of the buffer that are free, and too few for a part. */
static uint64_t skipped_bytes(const struct pt_trace *trace, uint64_t free)
{
	uint64_t behind = trace->memory.used - trace->position;

	if (!trace->wakes_up || trace->memory.mirrored || free < behind ||
	    behind / RECORD_BYTES >= least_records(trace))
		return 0;
	return behind;
}

/* Records of the next part, and the bytes that it skips. */
static uint64_t next_part(const struct pt_trace *trace, uint64_t *skipped)
{
	uint64_t size = trace->memory.used;
	uint64_t behind = size - trace->position;
	uint64_t free = behind;

	if (trace->wakes_up)
		free = PT_READ_ONCE(trace->tail) + size - trace->head;
	*skipped = skipped_bytes(trace, free);
	if (*skipped)
		behind = size;
	free -= *skipped;
	return (trace->memory.mirrored ? free : smaller(free, behind)) / RECORD_BYTES;
}

static bool is_full(const struct pt_trace *trace)
{
	uint64_t skipped;

	return !trace->ring && next_part(trace, &skipped) < least_records(trace);
}

/* Records of zeros are no branches. */
static void skip(struct pt_trace *trace, uint64_t bytes)
{
	if (!bytes)
		return;
	__builtin_memset((uint8_t *)trace->memory.linear + trace->position, 0, bytes);
	PT_WRITE_ONCE(trace->head, trace->head + bytes);
	trace->position = 0;
}

/* Where tracing waits for room is counted once. */
static void count_full(struct pt_trace *trace)
{
	if (!trace->stops || trace->stopped_at[0] != trace->head)
		pt_trace_count_stop(trace);
}

bool pt_branches_make_room(struct pt_trace *trace)
{
	struct pt_bts *bts = trace->bts;
	uint64_t skipped;
	uint64_t records;
	uint64_t reserve;

	if (trace->ring)
		return true;
	records = next_part(trace, &skipped);
	skip(trace, skipped);
	trace->full = records < least_records(trace);
	if (trace->full) {
		count_full(trace);
		return false;
	}
	records--; /* the mark at the end */
	reserve = records - smaller(records, bts->wake_up);
	return !pt_bts_layout(&bts->area, address_of(trace->memory.linear) + trace->position,
			      records * RECORD_BYTES, sizeof(uint64_t),
			      reserve > bts->reserve ? reserve : bts->reserve);
}

/* Where the next record goes. The processor may leave the index at the end of a ring. */
static uint64_t next_address(const struct pt_bts *bts)
{
	const struct pt_ds_area *area = &bts->area;
	bool wraps = !bts->reserve && area->bts_index == area->bts_maximum;

	return wraps ? area->bts_base : area->bts_index;
}

static void put_mark(const struct pt_unit *unit, struct pt_bts *bts,
		     const struct ptkit_branch_mark *thread)
{
	struct ptkit_branch_mark *mark = (void *)(uintptr_t)next_address(bts);

	*mark = *thread;
	mark->tsc = unit->ticks();
	bts->area.bts_index = address_of(mark + 1);
	bts->area.bts_index = next_address(bts);
}

static void put_end_mark(const struct pt_unit *unit, struct pt_bts *bts)
{
	const struct ptkit_branch_mark end = {.pid = ~bts->thread.pid, .tid = ~bts->thread.tid};

	put_mark(unit, bts, &end);
}

bool pt_branches_interrupt(const struct pt_bts *bts)
{
	return PT_READ_ONCE(bts->area.bts_index) >= bts->area.bts_threshold;
}

bool pt_branches_are_none(const struct pt_bts *bts)
{
	return PT_READ_ONCE(bts->area.bts_index) == bts->area.bts_base + RECORD_BYTES;
}

/* Precise events use the DS area, too. */
int pt_branches_start(const struct pt_unit *unit, struct pt_trace *trace)
{
	const struct pt_ops *ops = unit->ops;
	uint64_t precise;

	if (!ops->read(ops->ctx, PT_MSR_PEBS_ENABLE, &precise) && precise)
		return PT_E_BUSY;
	put_mark(unit, trace->bts, &trace->bts->thread);
	return pt_bts_start(ops, &trace->bts->state);
}

/*
 * Whether another user changed DS_AREA, or cleared DEBUGCTL.BTS, since the start. pt_bts_stop()
 * leaves a changed DS_AREA as the other user set it.
 */
static bool was_taken(const struct pt_ops *ops, struct pt_bts_state *state)
{
	uint64_t debugctl;
	uint64_t area;

	if (ops->read(ops->ctx, PT_MSR_DEBUGCTL, &debugctl) ||
	    ops->read(ops->ctx, PT_MSR_DS_AREA, &area))
		return false;
	if (area != state->ds_area)
		state->saved_ds_area = area;
	return area != state->ds_area || !(debugctl & PT_BIT(PT_DEBUGCTL_BTS));
}

/*
 * OVF_BUFFER reports this buffer: no other DS area was in use. Some processors do not set the bit,
 * or lack the register.
 */
static void acknowledge(const struct pt_ops *ops)
{
	uint64_t status;

	if (!ops->read(ops->ctx, PT_MSR_PERF_GLOBAL_STATUS, &status) &&
	    (status & PT_BIT(PT_PERF_GLOBAL_OVF_BUFFER)))
		ops->write(ops->ctx, PT_MSR_PERF_GLOBAL_OVF_CTRL,
			   PT_BIT(PT_PERF_GLOBAL_OVF_BUFFER));
}

static bool last_is_used(const struct pt_memory *memory)
{
	const struct pt_bts_record *records = memory->linear;
	const struct pt_bts_record *last = &records[memory->used / RECORD_BYTES - 1];

	return last->from || last->to || last->flags;
}

static void end_part(const struct pt_unit *unit, struct pt_trace *trace)
{
	struct pt_ds_area *area = &trace->bts->area;
	uint64_t index = area->bts_index;
	uint64_t bytes = index - area->bts_base + RECORD_BYTES;

	put_end_mark(unit, trace->bts);
	area->bts_index = index; /* the threshold is compared with the last branch */
	trace->position += bytes;
	if (trace->wakes_up) {
		trace->position %= trace->memory.used;
		PT_WRITE_ONCE(trace->head, trace->head + bytes);
	}
	trace->full = is_full(trace);
	/* The processor may have had more branches. */
	if (index == area->bts_maximum)
		pt_trace_count_stop(trace);
}

static void end_ring(const struct pt_unit *unit, struct pt_trace *trace)
{
	put_end_mark(unit, trace->bts);
	trace->position = pt_bts_position(&trace->bts->area);
	trace->lapped = trace->lapped || last_is_used(&trace->memory);
}

bool pt_branches_stop(const struct pt_unit *unit, struct pt_trace *trace)
{
	const struct pt_ops *ops = unit->ops;
	struct pt_bts *bts = trace->bts;
	bool taken = was_taken(ops, &bts->state);

	trace->error = pt_bts_stop(ops, &bts->state);
	trace->running = trace->error;
	if (trace->error)
		return false;
	if (pt_bts_position(&bts->area) > pt_bts_size(&bts->area)) {
		trace->error = PT_E_UNIT;
		return false;
	}
	if (trace->ring) {
		end_ring(unit, trace);
	} else {
		end_part(unit, trace);
		acknowledge(ops);
	}
	if (taken)
		pt_trace_count_clear(trace);
	return taken;
}
