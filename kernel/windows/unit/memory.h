/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The buffer of a trace: its regions, and the tables of these regions. */
#ifndef PTKIT_WINDOWS_MEMORY_H
#define PTKIT_WINDOWS_MEMORY_H

#include "ptkit/ptkit_windows.h"
#include "unit/trace.h"

/* False: there is too little memory. */
bool ptkit_memory_make(struct ptkit_trace *trace, const struct ptkit_config *config);
void ptkit_memory_free(struct ptkit_trace *trace);
/* Before a buffer is written again. */
void ptkit_memory_clear(struct ptkit_trace *trace);
/* Copies from an offset in the buffer; it may wrap at the end. */
void ptkit_memory_copy(const struct ptkit_trace *trace, uint64_t offset, uint64_t bytes,
		       uint8_t *to);

#endif /* PTKIT_WINDOWS_MEMORY_H */
