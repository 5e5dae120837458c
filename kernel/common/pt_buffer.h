/* SPDX-License-Identifier: MIT */
/*
 * Positions of the trace unit in a buffer. A position counts bytes from the beginning of the
 * buffer, in the order in which the unit fills it. The position `size` is the end of a buffer that
 * does not wrap.
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
 * Bytes written from one position to another in a buffer that wraps. The result is less than
 * `size`: positions do not show whole turns.
 */
uint64_t pt_bytes_between(uint64_t size, uint64_t from, uint64_t to);

/* The position of one reader. */
struct pt_cursor {
	uint64_t total; /* bytes written since the beginning */
	uint64_t position;
};

/*
 * `turns`: how often the unit passed the end of the buffer since the last call. Interrupts at the
 * end count them. A reader without interrupts passes `position < cursor->position`, and misses
 * whole turns.
 */
void pt_cursor_move(struct pt_cursor *cursor, uint64_t size, uint64_t position, uint64_t turns);

struct pt_piece {
	uint64_t offset;
	uint64_t bytes;
};

/*
 * Finds the newest `bytes` bytes before a position, at most `size`, oldest first. Returns the
 * number of parts of the buffer that they take, 0 to 2.
 */
uint32_t pt_newest_pieces(uint64_t size, uint64_t position, uint64_t bytes,
			  struct pt_piece pieces[2]);

#ifdef __cplusplus
}
#endif

#endif /* PTKIT_COMMON_PT_BUFFER_H */
