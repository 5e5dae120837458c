// SPDX-License-Identifier: MIT
#include "pt_memory.h"

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
