// SPDX-License-Identifier: MIT
#include "pt_bts.h"

#include "ptkit/rtit_regs.h"

#define RECORD_BYTES ((uint64_t)sizeof(struct pt_bts_record))

#define DEBUGCTL_BTS                                                                               \
	(PT_BIT(PT_DEBUGCTL_TR) | PT_BIT(PT_DEBUGCTL_BTS) | PT_BIT(PT_DEBUGCTL_BTINT) |            \
	 PT_BIT(PT_DEBUGCTL_BTS_OFF_OS) | PT_BIT(PT_DEBUGCTL_BTS_OFF_USR))

int pt_bts_layout(struct pt_ds_area *area, uint64_t buffer, uint64_t bytes, uint64_t reserve)
{
	uint64_t records = bytes / RECORD_BYTES;
	uint64_t used = records * RECORD_BYTES;

	if (buffer & 7 || records <= reserve || buffer + used < buffer)
		return PT_E_INVALID;
	area->bts_base = buffer;
	area->bts_index = buffer;
	area->bts_maximum = buffer + used;
	/* Without an interrupt the index never reaches the threshold. */
	area->bts_threshold = area->bts_maximum - reserve * RECORD_BYTES;
	if (!reserve)
		area->bts_threshold += RECORD_BYTES;
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

int pt_bts_stop(const struct pt_ops *ops, const struct pt_bts_state *state)
{
	uint64_t debugctl;

	if (ops->read(ops->ctx, PT_MSR_DEBUGCTL, &debugctl))
		return PT_E_FAULT;
	if (ops->write(ops->ctx, PT_MSR_DEBUGCTL, debugctl & ~DEBUGCTL_BTS))
		return PT_E_FAULT;
	/* Records are in memory before the index is read. */
	if (ops->barrier)
		ops->barrier(ops->ctx);
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
