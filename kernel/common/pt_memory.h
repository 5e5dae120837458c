/* SPDX-License-Identifier: MIT */
/* The memory of a trace: a single range, or regions that tables (ToPA) name. */
#ifndef PTKIT_COMMON_PT_MEMORY_H
#define PTKIT_COMMON_PT_MEMORY_H

#include "pt_sequence.h"
#include "pt_topa.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The driver allocates it. The regions are in the order in which the processor fills them. */
struct pt_memory {
	uint64_t bytes;
	uint64_t used; /* bytes that can be written */
	void *linear; /* all regions, mapped one after the other; null: they are not */
	bool mirrored; /* they are mapped twice: what wraps at the end is contiguous, too */
	const uint64_t *last_page; /* where it is mapped */
	struct pt_region *regions;
	uint32_t region_count;
	struct pt_table *tables; /* with ToPA */
	uint32_t table_count;
	struct pt_topa topa;
	bool single_range;
	bool written; /* it has to be cleared before it is written again */
};

/* Whether a byte from `position` to the end is not zero. All of `bytes` can be written. */
bool pt_memory_used_from(const struct pt_memory *memory, uint64_t position);
/* Whether OUTPUT_BASE leads to the memory. */
bool pt_memory_owns(struct pt_memory *memory, uint64_t base);
/* Sets the output registers for a position. With a single range, the position is 0. */
int pt_memory_output(struct pt_memory *memory, uint64_t position, struct pt_state *state);
/* Gets the position from the output registers. PT_E_FOREIGN: they do not point into the memory. */
int pt_memory_position(struct pt_memory *memory, const struct pt_state *state, uint64_t *position);

#ifdef __cplusplus
}
#endif

#endif /* PTKIT_COMMON_PT_MEMORY_H */
