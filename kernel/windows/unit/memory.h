/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Buffers: regions of physical memory, and the ToPA tables of these regions. */
#ifndef PTKIT_WINDOWS_MEMORY_H
#define PTKIT_WINDOWS_MEMORY_H

#include "common/pt_sequence.h"
#include "common/pt_topa.h"
#include "ptkit/ptkit_windows.h"
#include "unit/pages.h"

/* A buffer. The regions are in the order in which the processor fills them. */
struct ptkit_memory {
	struct ptkit_pages pages;
	uint64_t used; /* bytes that can be written */
	struct pt_region *regions;
	uint32_t region_count;
	struct ptkit_pages table_pages; /* with ToPA */
	struct pt_table *tables;
	uint32_t table_count;
	struct pt_topa topa;
	bool single_range;
	bool written;
};

/* A PTKIT_REASON_*. */
uint32_t ptkit_memory_make(struct ptkit_memory *memory, const struct ptkit_config *config);
void ptkit_memory_free(struct ptkit_memory *memory);
/* Before a buffer is written again. */
void ptkit_memory_clear(struct ptkit_memory *memory);
/* Whether a byte from `position` to the end of the buffer is not zero. */
bool ptkit_memory_used_from(const struct ptkit_memory *memory, uint64_t position);
/* Copies from a place in the buffer; it may wrap at the end. */
void ptkit_memory_copy(const struct ptkit_memory *memory, uint64_t offset, uint64_t bytes,
		       uint8_t *to);
/* Whether OUTPUT_BASE leads to the buffer. */
bool ptkit_memory_owns(struct ptkit_memory *memory, uint64_t base);
/* Sets the output registers for a position. With a single range, the position is 0. */
uint32_t ptkit_memory_output(struct ptkit_memory *memory, uint64_t position,
			     struct pt_state *state);
/* Gets the position from the output registers; refuses those that do not point into the buffer. */
uint32_t ptkit_memory_position(struct ptkit_memory *memory, const struct pt_state *state,
			       uint64_t *position);

#endif /* PTKIT_WINDOWS_MEMORY_H */
