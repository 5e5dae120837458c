// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Branch Trace Store: the processor writes a record of every branch to a buffer. The DS area has
 * the linear addresses of the buffer. Without an interrupt the buffer is a ring. With an interrupt,
 * the DS area has the part of the buffer that is free; the interrupt comes some records before the
 * end of that part, and the driver lays out the next one, or recording ends.
 *
 * The page tables of user code must map these addresses. Under page-table isolation they do not.
 * The kernel's cpu_entry_area is mapped there, but perf uses it.
 *
 * perf writes DS_AREA when it creates the first hardware event, and never clears it. So the value
 * of DS_AREA does not show whether perf uses it. The driver creates a hardware event that never
 * counts: no later event is the first one. Precise events use the DS area, too. While perf has any,
 * the driver does not use it.
 */
#include <linux/errno.h>
#include <linux/kmemleak.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/perf_event.h>
#include <linux/pid_namespace.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include <asm/tsc.h>

#include "common/pt_bts.h"
#include "machine/errors.h"
#include "machine/machine.h"
#include "ptkit/rtit_regs.h"
#include "unit/bts.h"
#include "unit/reserve.h"

#define RECORD_BYTES sizeof(struct pt_bts_record)

struct ptkit_bts {
	struct pt_ds_area area;
	struct pt_bts_state state;
	u64 reserve; /* records after the threshold; 0: a ring */
	u64 wake_up; /* records between two interrupts, at most */
	struct pid_namespace *ns; /* numbers the threads of marks */
	struct ptkit_branch_mark thread; /* that runs */
	struct perf_event *event; /* null: perf has no hardware events */
};

static_assert(sizeof(struct ptkit_branch_mark) == RECORD_BYTES);

int ptkit_bts_make(struct ptkit_trace *trace, const struct ptkit_config *config)
{
	struct ptkit_memory *memory = &trace->memory;
	u64 records = div_u64(memory->bytes, RECORD_BYTES);
	struct ptkit_bts *bts = kzalloc(sizeof(*bts), GFP_KERNEL_ACCOUNT);

	if (!bts)
		return -ENOMEM;
	bts->reserve = trace->ring ? 0 : records / 16;
	bts->wake_up = trace->wakes_up ? div_u64(config->wake_up_bytes, RECORD_BYTES) : records;
	bts->state.ds_area = (u64)&bts->area;
	bts->state.debugctl = pt_bts_debugctl(config->flags & PTKIT_TRACE_KERNEL,
					      config->flags & PTKIT_TRACE_USER, !trace->ring);
	memory->used = trace->wakes_up ? memory->bytes : records * RECORD_BYTES;
	bts->ns = get_pid_ns(task_active_pid_ns(current));
	bts->event = ptkit_make_event(PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES, trace->cpu);
	trace->bts = bts;
	return 0;
}

void ptkit_bts_free(struct ptkit_trace *trace)
{
	if (!trace->bts)
		return;
	if (trace->bts->event)
		perf_event_release_kernel(trace->bts->event);
	put_pid_ns(trace->bts->ns);
	kfree(trace->bts);
	trace->bts = NULL;
}

void ptkit_bts_abandon(const struct ptkit_trace *trace)
{
	kmemleak_ignore(trace->bts);
}

int ptkit_bts_reset(struct ptkit_trace *trace)
{
	const struct ptkit_memory *memory = &trace->memory;
	struct ptkit_bts *bts = trace->bts;

	return ptkit_errno(pt_bts_layout(&bts->area, (u64)memory->linear, memory->bytes,
					 sizeof(u64), bts->reserve));
}

void ptkit_bts_set_thread(struct ptkit_trace *trace, struct task_struct *task)
{
	struct ptkit_bts *bts = trace->bts;

	bts->thread.pid = task_tgid_nr_ns(task, bts->ns);
	bts->thread.tid = task_pid_nr_ns(task, bts->ns);
}

/* Records that fit, and the mark at the end. */
static u64 room(const struct ptkit_trace *trace)
{
	const struct ptkit_memory *memory = &trace->memory;
	u64 bytes = memory->used - trace->position;

	if (trace->wakes_up)
		bytes = READ_ONCE(trace->tail) + memory->bytes - trace->head;
	return div_u64(bytes, RECORD_BYTES);
}

/* A mark at the beginning, and a branch. */
static bool is_full(const struct ptkit_trace *trace)
{
	return !trace->ring && room(trace) < trace->bts->reserve + 3;
}

bool ptkit_bts_make_room(struct ptkit_trace *trace)
{
	struct ptkit_bts *bts = trace->bts;
	u64 records = room(trace) - 1;

	trace->full = is_full(trace);
	if (trace->full || trace->ring)
		return !trace->full;
	return !pt_bts_layout(&bts->area, (u64)trace->memory.linear + trace->position,
			      records * RECORD_BYTES, sizeof(u64),
			      max(bts->reserve, records - min(records, bts->wake_up)));
}

/* Where the next record goes. The processor may leave the index at the end of a ring. */
static u64 place_of(const struct ptkit_bts *bts)
{
	const struct pt_ds_area *area = &bts->area;
	bool wraps = !bts->reserve && area->bts_index == area->bts_maximum;

	return wraps ? area->bts_base : area->bts_index;
}

static void put_mark(struct ptkit_bts *bts, const struct ptkit_branch_mark *thread)
{
	struct ptkit_branch_mark *mark = (void *)place_of(bts);

	*mark = *thread;
	mark->tsc = rdtsc_ordered();
	bts->area.bts_index = (u64)(mark + 1);
	bts->area.bts_index = place_of(bts);
}

bool ptkit_bts_pends(const struct ptkit_trace *trace)
{
	const struct pt_ds_area *area = &trace->bts->area;

	return READ_ONCE(area->bts_index) >= area->bts_threshold;
}

int ptkit_bts_start(struct ptkit_trace *trace)
{
	const struct pt_ops *ops = &ptkit_machine.ops;
	u64 precise;

	if (!ops->read(ops->ctx, PT_MSR_PEBS_ENABLE, &precise) && precise)
		return -EBUSY;
	put_mark(trace->bts, &trace->bts->thread);
	return ptkit_errno(pt_bts_start(ops, &trace->bts->state));
}

/*
 * Whether another user changed DS_AREA, or cleared DEBUGCTL.BTS, since the start. pt_bts_stop()
 * leaves a changed DS_AREA as the other user set it.
 */
static bool was_taken(const struct pt_ops *ops, struct pt_bts_state *state)
{
	u64 debugctl;
	u64 area;

	if (ops->read(ops->ctx, PT_MSR_DEBUGCTL, &debugctl) ||
	    ops->read(ops->ctx, PT_MSR_DS_AREA, &area))
		return false;
	if (area != state->ds_area)
		state->saved_ds_area = area;
	return area != state->ds_area || !(debugctl & BIT(PT_DEBUGCTL_BTS));
}

/*
 * OVF_BUFFER reports this buffer: no other DS area was in use. Some processors do not set the bit,
 * or lack the register.
 */
static void acknowledge(const struct pt_ops *ops)
{
	u64 status;

	if (ops->read(ops->ctx, PT_MSR_PERF_GLOBAL_STATUS, &status))
		return;
	if (status & BIT_ULL(PT_PERF_GLOBAL_OVF_BUFFER))
		ops->write(ops->ctx, PT_MSR_PERF_GLOBAL_OVF_CTRL,
			   BIT_ULL(PT_PERF_GLOBAL_OVF_BUFFER));
}

static bool last_is_used(const struct ptkit_memory *memory)
{
	const struct pt_bts_record *records = memory->linear;
	const struct pt_bts_record *last = &records[memory->used / RECORD_BYTES - 1];

	return last->from || last->to || last->flags;
}

static void put_end_mark(struct ptkit_bts *bts)
{
	const struct ptkit_branch_mark end = { .pid = ~bts->thread.pid, .tid = ~bts->thread.tid };

	put_mark(bts, &end);
}

static void end_stretch(struct ptkit_trace *trace)
{
	struct pt_ds_area *area = &trace->bts->area;
	u64 index = area->bts_index;
	u64 bytes = index - area->bts_base + RECORD_BYTES;

	put_end_mark(trace->bts);
	area->bts_index = index; /* the threshold is compared with the last branch */
	trace->position += bytes;
	if (trace->wakes_up) {
		trace->position %= trace->memory.bytes;
		WRITE_ONCE(trace->head, trace->head + bytes);
	}
	trace->full = is_full(trace);
	/* The processor may have had more branches. */
	if (index == area->bts_maximum)
		ptkit_count_stop(trace);
}

static void end_stretch_of_ring(struct ptkit_trace *trace)
{
	put_end_mark(trace->bts);
	trace->position = pt_bts_position(&trace->bts->area);
	trace->lapped = trace->lapped || last_is_used(&trace->memory);
}

int ptkit_bts_stop(struct ptkit_trace *trace)
{
	const struct pt_ops *ops = &ptkit_machine.ops;
	struct ptkit_bts *bts = trace->bts;
	bool taken = was_taken(ops, &bts->state);
	int error = ptkit_errno(pt_bts_stop(ops, &bts->state));

	if (error)
		return error;
	if (pt_bts_position(&bts->area) > pt_bts_size(&bts->area))
		return -EIO;
	if (trace->ring) {
		end_stretch_of_ring(trace);
	} else {
		end_stretch(trace);
		acknowledge(ops);
	}
	if (taken)
		ptkit_note_cleared(trace);
	return 0;
}
