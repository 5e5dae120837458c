// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Branch Trace Store: the processor writes a record of every branch to a buffer. The DS area has
 * the linear addresses of the buffer. Without an interrupt the buffer is a ring. With an interrupt,
 * recording ends a few records before the end of the buffer.
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
#include <linux/perf_event.h>
#include <linux/slab.h>
#include <linux/smp.h>

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
	struct perf_event *event; /* null: perf has no hardware events */
};

int ptkit_bts_make(struct ptkit_trace *trace, const struct ptkit_config *config)
{
	struct ptkit_memory *memory = &trace->memory;
	u64 records = div_u64(memory->bytes, RECORD_BYTES);
	bool ring = config->mode == PTKIT_MODE_RING;
	struct ptkit_bts *bts = kzalloc(sizeof(*bts), GFP_KERNEL_ACCOUNT);

	if (!bts)
		return -ENOMEM;
	bts->reserve = ring ? 0 : records / 16;
	bts->state.ds_area = (u64)&bts->area;
	bts->state.debugctl = pt_bts_debugctl(config->flags & PTKIT_TRACE_KERNEL,
					      config->flags & PTKIT_TRACE_USER, !ring);
	memory->used = records * RECORD_BYTES;
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

	return last->from || last->to;
}

int ptkit_bts_stop(struct ptkit_trace *trace)
{
	const struct pt_ops *ops = &ptkit_machine.ops;
	const struct ptkit_memory *memory = &trace->memory;
	struct ptkit_bts *bts = trace->bts;
	int error;

	if (was_taken(ops, &bts->state))
		trace->clears++;
	error = ptkit_errno(pt_bts_stop(ops, &bts->state));
	if (error)
		return error;
	trace->position = pt_bts_position(&bts->area);
	if (trace->position > memory->used)
		return -EIO;
	if (trace->ring) {
		trace->position %= memory->used;
		trace->lapped = trace->lapped || last_is_used(memory);
	} else {
		trace->full = ptkit_bts_pends(trace);
		acknowledge(ops);
	}
	return 0;
}
