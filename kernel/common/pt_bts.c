// SPDX-License-Identifier: MIT
#include "pt_bts.h"

#include "ptkit/rtit_regs.h"

#define DEBUGCTL_BTS                                                                               \
	(PT_BIT(PT_DEBUGCTL_TR) | PT_BIT(PT_DEBUGCTL_BTS) | PT_BIT(PT_DEBUGCTL_BTINT) |            \
	 PT_BIT(PT_DEBUGCTL_BTS_OFF_OS) | PT_BIT(PT_DEBUGCTL_BTS_OFF_USR))

int pt_bts_layout(struct pt_ds_area *area, uint64_t buffer, uint64_t bytes, uint32_t word,
		  uint64_t reserve)
{
	uint64_t record = 3 * (uint64_t)word;
	uint64_t records = bytes / record;
	uint64_t used = records * record;

	if (buffer & (word - 1) || records <= reserve || buffer + used < buffer)
		return PT_E_INVALID;
	area->bts_base = buffer;
	area->bts_index = buffer;
	area->bts_maximum = buffer + used;
	/* Without an interrupt the index never reaches the threshold. */
	area->bts_threshold = area->bts_maximum - reserve * record;
	if (!reserve)
		area->bts_threshold += record;
	return 0;
}

uint64_t pt_bts_debugctl(bool os, bool user, bool interrupt)
{
	uint64_t bits = PT_BIT(PT_DEBUGCTL_TR) | PT_BIT(PT_DEBUGCTL_BTS);

	if (!os)
		bits |= PT_BIT(PT_DEBUGCTL_BTS_OFF_OS);
	if (!user)
		bits |= PT_BIT(PT_DEBUGCTL_BTS_OFF_USR);
	if (interrupt)
		bits |= PT_BIT(PT_DEBUGCTL_BTINT);
	return bits;
}

int pt_bts_start(const struct pt_ops *ops, struct pt_bts_state *state)
{
	uint64_t debugctl;

	if (ops->read(ops->ctx, PT_MSR_DEBUGCTL, &debugctl))
		return PT_E_FAULT;
	if (debugctl & (PT_BIT(PT_DEBUGCTL_TR) | PT_BIT(PT_DEBUGCTL_BTS)))
		return PT_E_BUSY;
	if (ops->read(ops->ctx, PT_MSR_DS_AREA, &state->saved_ds_area))
		return PT_E_FAULT;
	if (ops->write(ops->ctx, PT_MSR_DS_AREA, state->ds_area))
		return PT_E_FAULT;
	debugctl = (debugctl & ~DEBUGCTL_BTS) | (state->debugctl & DEBUGCTL_BTS);
	if (!ops->write(ops->ctx, PT_MSR_DEBUGCTL, debugctl))
		return 0;
	ops->write(ops->ctx, PT_MSR_DS_AREA, state->saved_ds_area);
	return PT_E_FAULT;
}

int pt_bts_pause(const struct pt_ops *ops)
{
	uint64_t debugctl;

	if (ops->read(ops->ctx, PT_MSR_DEBUGCTL, &debugctl))
		return PT_E_FAULT;
	if (ops->write(ops->ctx, PT_MSR_DEBUGCTL, debugctl & ~DEBUGCTL_BTS))
		return PT_E_FAULT;
	/* Records are in memory before the index is read. */
	if (ops->barrier)
		ops->barrier(ops->ctx);
	return 0;
}

int pt_bts_resume(const struct pt_ops *ops, const struct pt_bts_state *state)
{
	uint64_t debugctl;

	if (ops->read(ops->ctx, PT_MSR_DEBUGCTL, &debugctl))
		return PT_E_FAULT;
	debugctl = (debugctl & ~DEBUGCTL_BTS) | (state->debugctl & DEBUGCTL_BTS);
	return ops->write(ops->ctx, PT_MSR_DEBUGCTL, debugctl) ? PT_E_FAULT : 0;
}

int pt_bts_stop(const struct pt_ops *ops, const struct pt_bts_state *state)
{
	int error = pt_bts_pause(ops);

	if (error)
		return error;
	return ops->write(ops->ctx, PT_MSR_DS_AREA, state->saved_ds_area) ? PT_E_FAULT : 0;
}

uint64_t pt_bts_size(const struct pt_ds_area *area)
{
	return area->bts_maximum - area->bts_base;
}

uint64_t pt_bts_position(const struct pt_ds_area *area)
{
	return area->bts_index - area->bts_base;
}
