// SPDX-License-Identifier: MIT
#include "pt_buffer.h"

#include "pt_ops.h"
#include "ptkit/rtit_regs.h"

int pt_single_range(uint64_t base, uint64_t bytes, struct pt_output *output)
{
	if (bytes < PT_SINGLE_RANGE_LEAST || bytes > PT_SINGLE_RANGE_MOST || (bytes & (bytes - 1)))
		return PT_E_INVALID;
	if (base & (bytes - 1))
		return PT_E_INVALID;
	output->base = base;
	output->mask_ptrs = bytes - 1;
	return 0;
}

uint64_t pt_single_position(uint64_t mask_ptrs)
{
	return mask_ptrs >> PT_OUTPUT_OFFSET_SHIFT;
}

uint64_t pt_bytes_between(uint64_t size, uint64_t from, uint64_t to)
{
	return to >= from ? to - from : size - from + to;
}

void pt_cursor_move(struct pt_cursor *cursor, uint64_t size, uint64_t position, uint64_t turns)
{
	cursor->total += turns * size + position - cursor->position;
	cursor->position = position;
}

uint32_t pt_newest_pieces(uint64_t size, uint64_t position, uint64_t bytes,
			  struct pt_piece pieces[2])
{
	uint32_t count = 0;

	if (bytes > size)
		bytes = size;
	if (bytes > position) {
		pieces[count].bytes = bytes - position;
		pieces[count].offset = size - pieces[count].bytes;
		count++;
		bytes = position;
	}
	if (bytes) {
		pieces[count].bytes = bytes;
		pieces[count].offset = position - bytes;
		count++;
	}
	return count;
}
