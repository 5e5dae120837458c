// SPDX-License-Identifier: MIT
#include "pt_sequence.h"

#include "ptkit/rtit_regs.h"

#define TRACE_EN PT_BIT(PT_CTL_TRACE_EN)

/* FilterEn, ContextEn and TriggerEn are the processor's; anything else is reserved. */
#define STATUS_WRITABLE                                                                            \
	(PT_BIT(PT_STATUS_ERROR) | PT_BIT(PT_STATUS_STOPPED) | PT_BIT(PT_STATUS_PEND_PSB) |        \
	 PT_BIT(PT_STATUS_PEND_TOPA_PMI) |                                                         \
	 ((PT_BIT(PT_STATUS_PACKET_BYTE_COUNT_WIDTH) - 1) << PT_STATUS_PACKET_BYTE_COUNT_SHIFT))

static int write_msr(const struct pt_ops *ops, uint32_t msr, uint64_t value)
{
	return ops->write(ops->ctx, msr, value) ? PT_E_FAULT : 0;
}

static int read_msr(const struct pt_ops *ops, uint32_t msr, uint64_t *value)
{
	return ops->read(ops->ctx, msr, value) ? PT_E_FAULT : 0;
}

static bool uses_memory(const struct pt_state *state)
{
	return !(state->ctl & PT_BIT(PT_CTL_FABRIC_EN));
}

static bool uses_range(const struct pt_state *state, uint32_t range)
{
	uint32_t shift = PT_CTL_ADDR0_CFG_SHIFT + PT_CTL_ADDR_CFG_WIDTH * range;

	return (state->ctl >> shift) & (PT_BIT(PT_CTL_ADDR_CFG_WIDTH) - 1);
}

static int load_filters(const struct pt_ops *ops, const struct pt_state *state)
{
	uint32_t i;
	int error;

	if (state->ctl & PT_BIT(PT_CTL_CR3_FILTER)) {
		error = write_msr(ops, PT_MSR_RTIT_CR3_MATCH, state->cr3_match);
		if (error)
			return error;
	}
	for (i = 0; i < PT_ADDR_REGISTERS; i++) {
		if (!uses_range(state, i / 2))
			continue;
		error = write_msr(ops, PT_MSR_RTIT_ADDR0_A + i, state->addr[i]);
		if (error)
			return error;
	}
	return 0;
}

/* TraceEn is clear. */
static int load(const struct pt_ops *ops, const struct pt_state *state)
{
	int error;

	error = write_msr(ops, PT_MSR_RTIT_STATUS, state->status & STATUS_WRITABLE);
	if (!error && uses_memory(state))
		error = write_msr(ops, PT_MSR_RTIT_OUTPUT_BASE, state->output_base);
	if (!error && uses_memory(state))
		error = write_msr(ops, PT_MSR_RTIT_OUTPUT_MASK_PTRS, state->output_mask_ptrs);
	if (!error)
		error = load_filters(ops, state);
	if (error)
		return error;
	return write_msr(ops, PT_MSR_RTIT_CTL, state->ctl | TRACE_EN);
}

/*
 * TraceEn is clear: these registers no longer change. With ToPA the base is of the current table.
 */
static int read_back(const struct pt_ops *ops, struct pt_state *state)
{
	int error;

	error = read_msr(ops, PT_MSR_RTIT_STATUS, &state->status);
	if (!error && uses_memory(state))
		error = read_msr(ops, PT_MSR_RTIT_OUTPUT_BASE, &state->output_base);
	if (!error && uses_memory(state))
		error = read_msr(ops, PT_MSR_RTIT_OUTPUT_MASK_PTRS, &state->output_mask_ptrs);
	return error;
}

static int save(const struct pt_ops *ops, struct pt_state *state)
{
	int error = pt_seq_pause(ops, state);

	return error ? error : read_back(ops, state);
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
	return load(ops, state);
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
	return error ? error : load(ops, to);
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
	/* Acknowledged last: TraceEn is clear, so no further interrupt can come. */
	error = save(ops, state);
	if (error)
		return error;
	return write_msr(ops, PT_MSR_PERF_GLOBAL_OVF_CTRL, PT_BIT(PT_PERF_GLOBAL_TRACE_TOPA_PMI));
}

uint64_t pt_status_restarted(uint64_t status)
{
	return status & STATUS_WRITABLE & ~(PT_BIT(PT_STATUS_ERROR) | PT_BIT(PT_STATUS_STOPPED));
}
