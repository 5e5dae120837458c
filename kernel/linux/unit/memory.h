/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Buffers: regions of physical memory, and the ToPA tables of these regions. */
#ifndef PTKIT_LINUX_MEMORY_H
#define PTKIT_LINUX_MEMORY_H

#include <linux/mm_types.h>

#include "common/pt_trace.h"
#include "ptkit/ptkit_ioctl.h"

int ptkit_memory_make(struct pt_memory *memory, const struct ptkit_config *config, int node);
void ptkit_memory_free(struct pt_memory *memory);
/*
 * The memory is never freed: a processor may still write to it. It interrupts no more, as the
 * module may be unloaded.
 */
void ptkit_memory_abandon(struct pt_memory *memory);
/* Before a buffer is written again. -EINTR: the caller is being killed. */
int ptkit_memory_clear(struct pt_memory *memory);
int ptkit_memory_copy(const struct pt_memory *memory, u64 offset, u64 bytes, void __user *to);
int ptkit_memory_map(const struct pt_memory *memory, struct vm_area_struct *vma);

#endif /* PTKIT_LINUX_MEMORY_H */
