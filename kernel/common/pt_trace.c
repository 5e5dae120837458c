// SPDX-License-Identifier: MIT
#include "pt_trace.h"

#include "pt_ops.h"

bool pt_memory_used_from(const struct pt_memory *memory, uint64_t position)
{
	const uint8_t *page = (const uint8_t *)memory->last_page;
	uint64_t rest = memory->bytes - position;
	uint64_t i = 0;

	/* A trace unit never fills a page with PAD packets. */
	if (rest < PT_TOPA_LEAST_BYTES)
		i = PT_TOPA_LEAST_BYTES - rest;
	for (; i % sizeof(uint64_t); i++) {
		if (page[i])
			return true;
	}
	for (i /= sizeof(uint64_t); i < PT_TOPA_LEAST_BYTES / sizeof(uint64_t); i++) {
		if (memory->last_page[i])
			return true;
	}
	return false;
}

bool pt_memory_owns(struct pt_memory *memory, uint64_t base)
{
	if (memory->single_range)
		return base == memory->regions[0].base;
	return pt_topa_owns(&memory->topa, base);
}

int pt_memory_output(struct pt_memory *memory, uint64_t position, struct pt_state *state)
{
	struct pt_output output;
	int error;

	if (memory->single_range)
		error = pt_single_range(memory->regions[0].base, memory->bytes, &output);
	else
		error = pt_topa_output(&memory->topa, position, &output);
	if (error)
		return error;
	state->output_base = output.base;
	state->output_mask_ptrs = output.mask_ptrs;
	return 0;
}

int pt_memory_position(struct pt_memory *memory, const struct pt_state *state, uint64_t *position)
{
	const struct pt_output output = {
		.base = state->output_base,
		.mask_ptrs = state->output_mask_ptrs,
	};

	if (!memory->single_range)
		return pt_topa_position(&memory->topa, &output, position) ? PT_E_FOREIGN : 0;
	*position = pt_single_position(output.mask_ptrs);
	if (output.base == memory->regions[0].base && *position < memory->bytes)
		return 0;
	return PT_E_FOREIGN;
}

void pt_trace_count_stop(struct pt_trace *trace)
{
	trace->stops++;
	trace->stopped_at[1] = trace->stopped_at[0];
	trace->stopped_at[0] = trace->head;
}

void pt_trace_count_clear(struct pt_trace *trace)
{
	trace->clears++;
	trace->cleared_at = trace->wakes_up ? trace->head : trace->position;
}

int pt_trace_consume(struct pt_trace *trace, uint64_t tail)
{
	if (!trace->wakes_up || tail < trace->tail || tail > PT_READ_ONCE(trace->head))
		return PT_E_INVALID;
	PT_WRITE_ONCE(trace->tail, tail);
	return 0;
}

void pt_trace_status(const struct pt_trace *trace, struct ptkit_status *status)
{
	status->flags = (trace->started ? PTKIT_STATUS_STARTED : 0) |
			(trace->running ? PTKIT_STATUS_RUNNING : 0) |
			(trace->lapped ? PTKIT_STATUS_LAPPED : 0) |
			(trace->full ? PTKIT_STATUS_FULL : 0) |
			(trace->clears ? PTKIT_STATUS_CLEARED : 0);
	status->position = trace->position;
	status->rtit_status = trace->state.status;
	status->head = trace->head;
	status->tail = trace->tail;
	status->stops = trace->stops;
	status->stopped_at[0] = trace->stopped_at[0];
	status->stopped_at[1] = trace->stopped_at[1];
	status->clears = trace->clears;
	status->cleared_at = trace->cleared_at;
}
