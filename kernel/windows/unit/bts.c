// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Branch Trace Store: the processor writes a record of every branch to a buffer. The DS area has
 * the linear addresses of the buffer. Without an interrupt the buffer is a ring. With an interrupt,
 * the DS area has the part of the buffer that is free; the interrupt comes some records before the
 * end of that part, and the driver lays out the next one, or recording ends.
 *
 * All page tables must map these addresses while branches are stored. With KVA shadow those of user
 * code do not: the driver does not offer it there (session/config.c).
 *
 * A buffer holds whole records. A part that is laid out ends with the buffer; where too little is
 * left for one, zeros fill it up. Records have no time: marks around each part have it, and the
 * thread that runs then.
 */
#include <ntddk.h>

#include "unit/bts.h"

#include "common/pt_bts.h"
#include "machine/machine.h"
#include "machine/pool.h"
#include "machine/reasons.h"
#include "ptkit/rtit_regs.h"

#define RECORD_BYTES sizeof(struct pt_bts_record)

struct ptkit_bts {
	struct pt_ds_area area;
	struct pt_bts_state state;
	uint64_t reserve; /* records after the threshold; 0: a ring */
	uint64_t wake_up; /* records between two interrupts, at most */
};

_Static_assert(sizeof(struct ptkit_branch_mark) == RECORD_BYTES, "a mark is in place of a record");

uint32_t ptkit_bts_make(struct ptkit_trace *trace, const struct ptkit_config *config)
{
	uint64_t records = config->buffer_bytes / RECORD_BYTES;
	struct ptkit_bts *bts = ptkit_allocate(sizeof(*bts));

	if (!bts)
		return PTKIT_REASON_MEMORY;
	bts->reserve = trace->ring ? 0 : records / 16;
	bts->wake_up = trace->wakes_up ? config->wake_up_bytes / RECORD_BYTES : records;
	bts->state.ds_area = (uint64_t)(ULONG_PTR)&bts->area;
	bts->state.debugctl = pt_bts_debugctl(config->flags & PTKIT_TRACE_KERNEL,
					      config->flags & PTKIT_TRACE_USER, !trace->ring);
	trace->memory.used = records * RECORD_BYTES;
	trace->bts = bts;
	return PTKIT_REASON_NONE;
}

void ptkit_bts_free(struct ptkit_trace *trace)
{
	ptkit_free(trace->bts);
	trace->bts = NULL;
}

static uint64_t buffer_of(const struct ptkit_trace *trace)
{
	return (uint64_t)(ULONG_PTR)trace->memory.pages.linear;
}

uint32_t ptkit_bts_reset(struct ptkit_trace *trace)
{
	struct ptkit_bts *bts = trace->bts;

	return ptkit_reason(pt_bts_layout(&bts->area, buffer_of(trace), trace->memory.used,
					  sizeof(uint64_t), bts->reserve));
}

/* Records that may be written. */
static uint64_t free_records(const struct ptkit_trace *trace)
{
	if (trace->wakes_up)
		return (trace->tail + trace->memory.used - trace->head) / RECORD_BYTES;
	return (trace->memory.used - trace->position) / RECORD_BYTES;
}

/* A mark at the beginning, a branch, and a mark at the end. */
static uint64_t least_records(const struct ptkit_trace *trace)
{
	return trace->bts->reserve + 3;
}

/* Goes to the beginning of the buffer if what is left at its end is too little, and free. */
static void skip_the_end(struct ptkit_trace *trace)
{
	uint64_t bytes = trace->memory.used - trace->position;

	if (!trace->wakes_up || bytes / RECORD_BYTES >= least_records(trace) ||
	    free_records(trace) * RECORD_BYTES < bytes)
		return;
	RtlZeroMemory((uint8_t *)trace->memory.pages.linear + trace->position, (SIZE_T)bytes);
	trace->head += bytes;
	trace->position = 0;
}

bool ptkit_bts_make_room(struct ptkit_trace *trace)
{
	struct ptkit_bts *bts = trace->bts;
	uint64_t records;

	if (trace->ring)
		return true;
	skip_the_end(trace);
	records = min(free_records(trace), (trace->memory.used - trace->position) / RECORD_BYTES);
	trace->full = records < least_records(trace);
	if (trace->full)
		return false;
	records--; /* the mark at the end */
	return !pt_bts_layout(&bts->area, buffer_of(trace) + trace->position,
			      records * RECORD_BYTES, sizeof(uint64_t),
			      max(bts->reserve, records - min(records, bts->wake_up)));
}

/* Where the next record goes. The processor may leave the index at the end of a ring. */
static uint64_t place_of(const struct ptkit_bts *bts)
{
	const struct pt_ds_area *area = &bts->area;
	bool wraps = !bts->reserve && area->bts_index == area->bts_maximum;

	return wraps ? area->bts_base : area->bts_index;
}

/* At an end the numbers are negative. */
static void put_mark(struct ptkit_bts *bts, bool end)
{
	struct ptkit_branch_mark *mark = (void *)(ULONG_PTR)place_of(bts);
	int32_t pid = (int32_t)(ULONG_PTR)PsGetCurrentProcessId();
	int32_t tid = (int32_t)(ULONG_PTR)PsGetCurrentThreadId();

	mark->from = 0;
	mark->pid = end ? ~pid : pid;
	mark->tid = end ? ~tid : tid;
	mark->tsc = ptkit_machine.ticks();
	bts->area.bts_index = (uint64_t)(ULONG_PTR)(mark + 1);
	bts->area.bts_index = place_of(bts);
}

static uint64_t index_of(const struct ptkit_bts *bts)
{
	return *(const volatile uint64_t *)&bts->area.bts_index;
}

bool ptkit_bts_pends(const struct ptkit_trace *trace)
{
	return index_of(trace->bts) >= trace->bts->area.bts_threshold;
}

bool ptkit_bts_is_empty(const struct ptkit_trace *trace)
{
	return index_of(trace->bts) == trace->bts->area.bts_base + RECORD_BYTES;
}

/* Precise events use the DS area, too. */
uint32_t ptkit_bts_start(struct ptkit_trace *trace)
{
	const struct pt_ops *ops = &ptkit_machine.ops;
	uint64_t precise;

	if (!ops->read(ops->ctx, PT_MSR_PEBS_ENABLE, &precise) && precise)
		return PTKIT_REASON_OWNER;
	put_mark(trace->bts, false);
	return ptkit_reason(pt_bts_start(ops, &trace->bts->state));
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

static bool last_is_used(const struct ptkit_memory *memory)
{
	const struct pt_bts_record *records = memory->pages.linear;
	const struct pt_bts_record *last = &records[memory->used / RECORD_BYTES - 1];

	return last->from || last->to || last->flags;
}

static void end_part(struct ptkit_trace *trace)
{
	struct pt_ds_area *area = &trace->bts->area;
	uint64_t index = area->bts_index;
	uint64_t bytes = index - area->bts_base + RECORD_BYTES;

	put_mark(trace->bts, true);
	area->bts_index = index; /* the threshold is compared with the last branch */
	trace->position += bytes;
	if (trace->wakes_up) {
		trace->position %= trace->memory.used;
		trace->head += bytes;
	}
	/* The processor may have had more branches. */
	if (index == area->bts_maximum)
		ptkit_count_stop(trace);
}

static void end_ring(struct ptkit_trace *trace)
{
	put_mark(trace->bts, true);
	trace->position = pt_bts_position(&trace->bts->area);
	trace->lapped = trace->lapped || last_is_used(&trace->memory);
}

uint32_t ptkit_bts_stop(struct ptkit_trace *trace)
{
	const struct pt_ops *ops = &ptkit_machine.ops;
	struct ptkit_bts *bts = trace->bts;
	bool taken = was_taken(ops, &bts->state);
	uint32_t reason = ptkit_reason(pt_bts_stop(ops, &bts->state));

	if (reason)
		return reason;
	if (pt_bts_position(&bts->area) > pt_bts_size(&bts->area))
		return PTKIT_REASON_ERROR;
	if (trace->ring) {
		end_ring(trace);
	} else {
		end_part(trace);
		acknowledge(ops);
	}
	if (taken) {
		ptkit_note_cleared(trace);
		ptkit_report(trace->waiter, PTKIT_EVENT_CLEARED);
	}
	return PTKIT_REASON_NONE;
}
