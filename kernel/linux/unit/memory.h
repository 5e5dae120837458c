/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Buffers: regions of physical memory, and the ToPA tables of these regions. */
#ifndef PTKIT_LINUX_MEMORY_H
#define PTKIT_LINUX_MEMORY_H

#include <linux/mm_types.h>
#include <linux/types.h>

#include "common/pt_sequence.h"
#include "common/pt_topa.h"
#include "ptkit/ptkit_ioctl.h"

/* A buffer. The regions are in the order in which the processor fills them. */
struct ptkit_memory {
	u64 bytes;
	u64 used; /* bytes that can be written */
	void *linear; /* with Branch Trace Store: all regions, mapped one after the other, twice */
	struct pt_region *regions;
	u32 region_count;
	struct pt_table *tables; /* with ToPA */
	u32 table_count;
	struct pt_topa topa;
	bool single_range;
	bool written;
};

int ptkit_memory_make(struct ptkit_memory *memory, const struct ptkit_config *config, int node);
void ptkit_memory_free(struct ptkit_memory *memory);
/*
 * The memory is never freed: a processor may still write to it. It interrupts no more, as the
 * module may be unloaded.
 */
void ptkit_memory_abandon(struct ptkit_memory *memory);
/* Before a buffer is written again. -EINTR: the caller is being killed. */
int ptkit_memory_clear(struct ptkit_memory *memory);
/* Whether a byte from `position` to the end of the buffer is not zero. */
bool ptkit_memory_used_from(const struct ptkit_memory *memory, u64 position);
int ptkit_memory_copy(const struct ptkit_memory *memory, u64 offset, u64 bytes, void __user *to);
int ptkit_memory_map(const struct ptkit_memory *memory, struct vm_area_struct *vma);
/* Whether OUTPUT_BASE leads to the buffer. */
bool ptkit_memory_owns(struct ptkit_memory *memory, u64 base);
/* Sets the output registers for a position. With a single range, the position is 0. */
int ptkit_memory_output(struct ptkit_memory *memory, u64 position, struct pt_state *state);
/* Gets the position from the output registers; -EIO if they do not point into the buffer. */
int ptkit_memory_position(struct ptkit_memory *memory, const struct pt_state *state, u64 *position);

#endif /* PTKIT_LINUX_MEMORY_H */
