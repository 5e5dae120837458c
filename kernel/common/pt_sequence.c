// SPDX-License-Identifier: MIT
#include "pt_sequence.h"

#include "ptkit/rtit_regs.h"

#define TRACE_EN PT_BIT(PT_CTL_TRACE_EN)

/* FilterEn, ContextEn and TriggerEn are the processor's; anything else is reserved. */
#define STATUS_WRITABLE                                                                            \
	(PT_BIT(PT_STATUS_ERROR) | PT_BIT(PT_STATUS_STOPPED) | PT_BIT(PT_STATUS_PEND_PSB) |        \
	 PT_BIT(PT_STATUS_PEND_TOPA_PMI) |                                                         \
	 ((PT_BIT(PT_STATUS_PACKET_BYTE_COUNT_WIDTH) - 1) << PT_STATUS_PACKET_BYTE_COUNT_SHIFT))

typedef int access_fn(const struct pt_ops *ops, uint32_t msr, uint64_t *value);

static int write_msr(const struct pt_ops *ops, uint32_t msr, uint64_t value)
{
	return ops->write(ops->ctx, msr, value) ? PT_E_FAULT : 0;
}

static int write_from(const struct pt_ops *ops, uint32_t msr, uint64_t *value)
{
	return write_msr(ops, msr, *value);
}

static int read_msr(const struct pt_ops *ops, uint32_t msr, uint64_t *value)
{
	return ops->read(ops->ctx, msr, value) ? PT_E_FAULT : 0;
}

static bool uses_range(const struct pt_state *state, uint32_t range)
{
	uint32_t shift = PT_CTL_ADDR0_CFG_SHIFT + PT_CTL_ADDR_CFG_WIDTH * range;

	return (state->ctl >> shift) & (PT_BIT(PT_CTL_ADDR_CFG_WIDTH) - 1);
}

/* The registers that tracing changes; those of output are not used with FabricEn. */
static int access_output(const struct pt_ops *ops, const struct pt_state *user,
			 struct pt_state *values, access_fn *access)
{
	int error = access(ops, PT_MSR_RTIT_STATUS, &values->status);

	if (user->ctl & PT_BIT(PT_CTL_FABRIC_EN))
		return error;
	if (!error)
		error = access(ops, PT_MSR_RTIT_OUTPUT_BASE, &values->output_base);
	if (!error)
		error = access(ops, PT_MSR_RTIT_OUTPUT_MASK_PTRS, &values->output_mask_ptrs);
	return error;
}

/* All registers that a context uses, but CTL. */
static int access_all(const struct pt_ops *ops, const struct pt_state *user,
		      struct pt_state *values, access_fn *access)
{
	int error = access_output(ops, user, values, access);
	uint32_t i;

	if (!error && (user->ctl & PT_BIT(PT_CTL_CR3_FILTER)))
		error = access(ops, PT_MSR_RTIT_CR3_MATCH, &values->cr3_match);
	for (i = 0; i < PT_ADDR_REGISTERS && !error; i++) {
		if (uses_range(user, i / 2))
			error = access(ops, PT_MSR_RTIT_ADDR0_A + i, &values->addr[i]);
	}
	return error;
}

/* TraceEn is clear. */
static int load(const struct pt_ops *ops, const struct pt_state *user,
		const struct pt_state *values, uint64_t ctl)
{
	struct pt_state writable = *values;
	int error;

	writable.status &= STATUS_WRITABLE;
	error = access_all(ops, user, &writable, write_from);
	return error ? error : write_msr(ops, PT_MSR_RTIT_CTL, ctl);
}

static int save(const struct pt_ops *ops, struct pt_state *state)
{
	int error = pt_seq_pause(ops, state);

	/* TraceEn is clear: these registers no longer change. The base is of the current table. */
	return error ? error : access_output(ops, state, state, read_msr);
}

int pt_seq_start(const struct pt_ops *ops, const struct pt_state *state)
{
	uint64_t ctl;
	int error;

	error = read_msr(ops, PT_MSR_RTIT_CTL, &ctl);
	if (error)
		return error;
	if (ctl & TRACE_EN)
		return PT_E_BUSY;
	return load(ops, state, state, state->ctl | TRACE_EN);
}

int pt_seq_keep(const struct pt_ops *ops, const struct pt_state *state, struct pt_state *found)
{
	int error = read_msr(ops, PT_MSR_RTIT_CTL, &found->ctl);

	return error ? error : access_all(ops, state, found, read_msr);
}

int pt_seq_put_back(const struct pt_ops *ops, const struct pt_state *state,
		    const struct pt_state *found)
{
	return load(ops, state, found, found->ctl & ~TRACE_EN);
}

int pt_seq_pause(const struct pt_ops *ops, const struct pt_state *state)
{
	int error = write_msr(ops, PT_MSR_RTIT_CTL, state->ctl & ~TRACE_EN);

	/*
	 * The write flushes the unit's internal buffers, but orders no stores for other processors.
	 */
	if (!error && ops->barrier)
		ops->barrier(ops->ctx);
	return error;
}

int pt_seq_resume(const struct pt_ops *ops, const struct pt_state *state)
{
	return write_msr(ops, PT_MSR_RTIT_CTL, state->ctl | TRACE_EN);
}

int pt_seq_stop(const struct pt_ops *ops, struct pt_state *state)
{
	int error = save(ops, state);

	return error ? error : write_msr(ops, PT_MSR_RTIT_CTL, 0);
}

int pt_seq_switch(const struct pt_ops *ops, struct pt_state *from, const struct pt_state *to)
{
	int error;

	if (!from)
		return to ? pt_seq_start(ops, to) : 0;
	if (!to)
		return pt_seq_stop(ops, from);
	error = save(ops, from);
	return error ? error : load(ops, to, to, to->ctl | TRACE_EN);
}

int pt_seq_serve(const struct pt_ops *ops, struct pt_state *state)
{
	int error = save(ops, state);

	/* Acknowledged last: TraceEn is clear, so no further interrupt can come. */
	if (error)
		return error;
	return write_msr(ops, PT_MSR_PERF_GLOBAL_OVF_CTRL, PT_BIT(PT_PERF_GLOBAL_TRACE_TOPA_PMI));
}

int pt_seq_interrupt(const struct pt_ops *ops, struct pt_state *state, bool *pending)
{
	uint64_t status;
	int error;

	*pending = false;
	error = read_msr(ops, PT_MSR_PERF_GLOBAL_STATUS, &status);
	if (error || !(status & PT_BIT(PT_PERF_GLOBAL_TRACE_TOPA_PMI)))
		return error;
	*pending = true;
	return pt_seq_serve(ops, state);
}

uint64_t pt_status_restarted(uint64_t status)
{
	return status & STATUS_WRITABLE & ~(PT_BIT(PT_STATUS_ERROR) | PT_BIT(PT_STATUS_STOPPED));
}
