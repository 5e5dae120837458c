/* SPDX-License-Identifier: MIT */
/*
 * Where the trace unit writes: to one range of physical memory, or by tables of physical addresses
 * (ToPA) to many regions. Intel SDM vol. 3, chapter "Intel Processor Trace", sections "Single
 * Range Output" and "Table of Physical Addresses (ToPA)".
 *
 * A position counts bytes from the beginning of the buffer, in the order in which the unit fills
 * it. The position `size` is the end of a buffer that does not wrap.
 */
#ifndef PTKIT_COMMON_PT_TOPA_H
#define PTKIT_COMMON_PT_TOPA_H

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

/* A part of a buffer. */
struct pt_part {
	uint64_t offset;
	uint64_t bytes;
};

/*
 * Finds the newest `bytes` bytes before a position, at most `size`, oldest first. Returns the
 * number of parts that they take, 0 to 2.
 */
uint32_t pt_newest_parts(uint64_t size, uint64_t position, uint64_t bytes, struct pt_part parts[2]);

#define PT_TOPA_LEAST_BYTES ((uint64_t)4096) /* a region; also what tables are aligned to */
#define PT_TOPA_LARGEST_SIZE 15 /* 128 MiB */

/* Contiguous physical memory to write to; both are multiples of 4 KiB. */
struct pt_region {
	uint64_t base;
	uint64_t bytes;
};

/* Memory for a table. */
struct pt_table {
	uint64_t *entries;
	uint64_t physical; /* physical address of the entries; a multiple of 4 KiB */
	uint64_t begin; /* position of its first region; pt_topa_build() sets it */
	uint32_t capacity; /* entries, with the one that leads on; at least 2 */
};

struct pt_topa_options {
	uint64_t interrupt_bytes; /* INT in the entry that makes so many bytes full; 0: nowhere */
	bool ring; /* the first region follows the last one; otherwise the last one has STOP */
	bool one_entry; /* the processor takes one region only (CPUID 14H: ECX bit 1 is clear) */
	uint8_t largest_size; /* regions of up to 4 KiB << n; 15 at most */
	uint8_t physical_bits; /* MAXPHYADDR */
};

/*
 * Functions that take a position or registers run in the handler of the interrupt: each looks at
 * one table at most, and finds it by binary search.
 */
struct pt_topa {
	const struct pt_table *tables; /* the caller's */
	uint32_t table_count; /* that are used */
	uint32_t entry_count; /* regions in all tables */
	uint64_t bytes; /* size of the buffer */
	uint64_t *last; /* entry of the last region */
	uint64_t *stop; /* entry that pt_topa_stop_before() has changed, or null */
	uint64_t unchanged; /* what it was */
	uint64_t looked_at; /* tables and entries, since the beginning */
};

/*
 * Entries that regions take, split into powers of two that are aligned to their size; 0: a region
 * breaks a rule.
 */
uint64_t pt_topa_entries(const struct pt_region *regions, uint32_t count,
			 const struct pt_topa_options *options);

/*
 * Fills the tables. Their physical addresses ascend. PT_E_INVALID if a region or table breaks a
 * rule above, overlaps the end of physical memory, or one entry has to do and does not; PT_E_ROOM
 * if there are more entries than room. The unit must not use the tables meanwhile.
 */
int pt_topa_build(struct pt_topa *topa, struct pt_table *tables, uint32_t table_count,
		  const struct pt_region *regions, uint32_t region_count,
		  const struct pt_topa_options *options);

/* Registers for a position in [0, bytes). PT_E_INVALID if it is another. */
int pt_topa_output(struct pt_topa *topa, uint64_t position, struct pt_output *output);

/* Whether OUTPUT_BASE is one of the tables. */
bool pt_topa_owns(struct pt_topa *topa, uint64_t base);

/*
 * The position of registers; the END entry is the beginning of the next region. PT_E_INVALID if
 * they are of other tables, or outside of their region.
 */
int pt_topa_position(struct pt_topa *topa, const struct pt_output *output, uint64_t *position);

/*
 * Puts STOP and INT into the entry before the region that a position in [0, bytes) is in, and takes
 * them away from where they were put last. `begin` is where that region begins. The unit may have
 * read the entries already. PT_E_INVALID if it is another position.
 */
int pt_topa_stop_before(struct pt_topa *topa, uint64_t position, uint64_t *begin);

/* Undoes the last pt_topa_stop_before(), if there was any. */
void pt_topa_do_not_stop(struct pt_topa *topa);

/* Takes INT from all entries: no interrupt follows, but that of the entry which the unit has read.
 */
void pt_topa_silence(struct pt_topa *topa);

#ifdef __cplusplus
}
#endif

#endif /* PTKIT_COMMON_PT_TOPA_H */
