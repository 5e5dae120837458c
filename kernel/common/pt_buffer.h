/* SPDX-License-Identifier: MIT */
/*
 * Where in a buffer the unit writes. A position is a number of bytes from the buffer's beginning,
 * in the order in which the unit fills it; the size stands for the end of a buffer that does not
 * wrap.
 */
#ifndef PTKIT_COMMON_PT_BUFFER_H
#define PTKIT_COMMON_PT_BUFFER_H

#include "pt_types.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PT_SINGLE_RANGE_LEAST ((uint64_t)128)
#define PT_SINGLE_RANGE_MOST ((uint64_t)1 << 32)

/* Values of OUTPUT_BASE and OUTPUT_MASK_PTRS. */
struct pt_output {
	uint64_t base;
	uint64_t mask_ptrs;
};

/*
 * One range of physical memory, from its beginning. PT_E_INVALID unless `bytes` is a power of two
 * from 128 to 2^32, and `base` a multiple of it.
 */
int pt_single_range(uint64_t base, uint64_t bytes, struct pt_output *output);

/* The position in one range: OutputOffset. */
uint64_t pt_single_position(uint64_t mask_ptrs);

/*
 * Bytes written from one position to another in a buffer that wraps; less than `size`, for whole
 * turns leave no mark.
 */
uint64_t pt_bytes_between(uint64_t size, uint64_t from, uint64_t to);

/* What one reader has seen. */
struct pt_cursor {
	uint64_t total; /* bytes written since the beginning */
	uint64_t position;
};

/*
 * `turns`: how often the end of the buffer was passed since the last call, as interrupts there
 * tell. Who gets none passes `position < cursor->position`, and misses whole turns.
 */
void pt_cursor_move(struct pt_cursor *cursor, uint64_t size, uint64_t position, uint64_t turns);

struct pt_piece {
	uint64_t offset;
	uint64_t bytes;
};

/*
 * Where the newest `bytes` bytes before a position are, oldest first; the number of pieces, 0 to 2.
 * More than `size` bytes are not there.
 */
uint32_t pt_newest_pieces(uint64_t size, uint64_t position, uint64_t bytes,
			  struct pt_piece pieces[2]);

#ifdef __cplusplus
}
#endif

#endif /* PTKIT_COMMON_PT_BUFFER_H */
