/* SPDX-License-Identifier: MIT */
/*
 * Tables of physical addresses (ToPA): output to many regions of memory.
 * Intel SDM vol. 3, chapter "Intel Processor Trace", section "Table of Physical Addresses (ToPA)".
 */
#ifndef PTKIT_COMMON_PT_TOPA_H
#define PTKIT_COMMON_PT_TOPA_H

#include "pt_buffer.h"

#ifdef __cplusplus
extern "C" {
#endif

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
	uint32_t capacity; /* entries, with the one that leads on; at least 2 */
};

struct pt_topa_options {
	uint64_t interrupt_bytes; /* INT in the entry that makes so many bytes full; 0: nowhere */
	bool ring; /* the first region follows the last one; otherwise the last one has STOP */
	bool one_entry; /* the processor takes one region only (CPUID 14H: ECX bit 1 is clear) */
	uint8_t largest_size; /* regions of up to 4 KiB << n; 15 at most */
	uint8_t physical_bits; /* MAXPHYADDR */
};

/* The entry of a region, and the part of the buffer that the region is. */
struct pt_place {
	uint32_t table;
	uint32_t index;
	uint64_t begin;
	uint64_t bytes;
};

struct pt_topa {
	const struct pt_table *tables; /* the caller's */
	uint32_t table_count; /* that are used */
	uint32_t entry_count; /* regions in all tables */
	uint64_t bytes; /* size of the buffer */
	struct pt_place last; /* that pt_topa_position() found */
};

/*
 * Entries that regions take, split into powers of two that are aligned to their size; 0: a region
 * breaks a rule.
 */
uint64_t pt_topa_entries(const struct pt_region *regions, uint32_t count,
			 const struct pt_topa_options *options);

/*
 * Fills the tables. PT_E_INVALID if a region or table breaks a rule above, overlaps the end of
 * physical memory, or one entry has to do and does not; PT_E_ROOM if there are more entries than
 * room. The unit must not use the tables meanwhile.
 */
int pt_topa_build(struct pt_topa *topa, const struct pt_table *tables, uint32_t table_count,
		  const struct pt_region *regions, uint32_t region_count,
		  const struct pt_topa_options *options);

/* Registers for a position in [0, bytes). PT_E_INVALID if it is another. */
int pt_topa_output(const struct pt_topa *topa, uint64_t position, struct pt_output *output);

/*
 * The position of registers. PT_E_INVALID if they are of other tables, or outside of their region.
 * Looks from where it found the last one on: a trace that goes on is found in a step or two.
 */
int pt_topa_position(struct pt_topa *topa, const struct pt_output *output, uint64_t *position);

/*
 * Sets or clears INT or STOP (PT_TOPA_INT, PT_TOPA_STOP) of the entry that a position is in. The
 * unit may have read the entry already.
 */
int pt_topa_mark(const struct pt_topa *topa, uint64_t position, uint32_t bit, bool on);

#ifdef __cplusplus
}
#endif

#endif /* PTKIT_COMMON_PT_TOPA_H */
