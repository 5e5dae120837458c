// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Branch Trace Store: the processor writes a record of every branch to a buffer that the DS area
 * names, by linear addresses. Without an interrupt the buffer is a ring. With one, it comes a few
 * records before the end, and the buffer stays as it is then.
 *
 * User code must see these addresses, too: under page-table isolation it does not. perf has a place
 * that it does see, but that is perf's.
 *
 * perf writes DS_AREA when its first event of the hardware is made, and leaves it as it is
 * afterwards, so its value says nothing. We have such an event, which never counts: then no other
 * one is the first. Precise events use the area, too: while there are any, it is not for us.
 */
#include <linux/cpufeature.h>
#include <linux/err.h>
#include <linux/errno.h>
#include <linux/kmemleak.h>
#include <linux/perf_event.h>
#include <linux/slab.h>
#include <linux/smp.h>

#include "common/pt_bts.h"
#include "ptkit.h"
#include "ptkit/rtit_regs.h"

#define RECORD_BYTES sizeof(struct pt_bts_record)

struct ptkit_bts {
	struct pt_ds_area area;
	struct pt_bts_state state;
	u64 reserve; /* records behind the threshold; 0: a ring */
	struct perf_event *event; /* null where perf has none */
};

static struct perf_event *make_event(unsigned int cpu)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_HARDWARE,
		.config = PERF_COUNT_HW_CPU_CYCLES,
		.size = sizeof(attr),
		.disabled = 1,
	};
	struct perf_event *event = perf_event_create_kernel_counter(&attr, cpu, NULL, NULL, NULL);

	return IS_ERR(event) ? NULL : event;
}

void ptkit_bts_read_caps(struct ptkit_caps *caps, const u32 cpuid_1[4])
{
	const struct pt_ops *ops = &ptkit_machine.ops;
	u64 enable;

	if (!(cpuid_1[3] & BIT(PT_CPUID_1_EDX_DS)) || !(cpuid_1[2] & BIT(PT_CPUID_1_ECX_DTES64)))
		return;
	if (boot_cpu_has(X86_FEATURE_PTI))
		return;
	if (ops->read(ops->ctx, PT_MSR_MISC_ENABLE, &enable))
		return;
	caps->bts = !(enable & BIT(PT_MISC_ENABLE_BTS_UNAVAILABLE));
	caps->bts_levels = cpuid_1[2] & BIT(PT_CPUID_1_ECX_DS_CPL);
}

int ptkit_bts_check(const struct ptkit_caps *caps, struct ptkit_config *config)
{
	const u64 levels = PTKIT_TRACE_USER | PTKIT_TRACE_KERNEL;
	u64 wanted = config->flags & levels;

	if (!caps->bts)
		return PTKIT_REFUSE(config, output, -EOPNOTSUPP);
	if (config->target == PTKIT_TARGET_TASK)
		return PTKIT_REFUSE(config, target, -EINVAL);
	if (config->process)
		return PTKIT_REFUSE(config, process, -EINVAL);
	if (!wanted || (config->flags & ~(levels | PTKIT_TRACE_BRANCHES)))
		return PTKIT_REFUSE(config, flags, -EINVAL);
	if (wanted != levels && !caps->bts_levels)
		return PTKIT_REFUSE(config, flags, -EOPNOTSUPP);
	if (config->mtc_freq)
		return PTKIT_REFUSE(config, mtc_freq, -EINVAL);
	if (config->cyc_thresh)
		return PTKIT_REFUSE(config, cyc_thresh, -EINVAL);
	if (config->psb_freq)
		return PTKIT_REFUSE(config, psb_freq, -EINVAL);
	if (config->range_count)
		return PTKIT_REFUSE(config, range_count, -EINVAL);
	return 0;
}

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
	bts->event = make_event(trace->cpu);
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
					 bts->reserve));
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

/* Whoever set DS_AREA meanwhile finds it as it is. */
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

/* It is ours: nobody else had a DS area. Not all processors tell, or have the register. */
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
		WRITE_ONCE(trace->cleared, true);
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
