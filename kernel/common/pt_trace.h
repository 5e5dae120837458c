/* SPDX-License-Identifier: MIT */
/*
 * A trace: what is written to one buffer, how much of that is free, and what was lost. Its memory
 * is a single range, or regions that tables (ToPA) name.
 */
#ifndef PTKIT_COMMON_PT_TRACE_H
#define PTKIT_COMMON_PT_TRACE_H

#include "pt_sequence.h"
#include "pt_topa.h"
#include "ptkit/ptkit_abi.h"

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

struct pt_bts;
struct pt_unit;

/*
 * Members that tracing changes are changed on the processor of the trace, where nothing else of the
 * driver interrupts. A lock of the driver guards `started`, `wanted` and `tail`.
 */
struct pt_trace {
	struct pt_memory memory;
	struct pt_bts *bts; /* null: Processor Trace */
	struct pt_state state; /* as last loaded, or read back */
	const struct pt_unit *unit; /* where it was loaded last */
	uint64_t position; /* at the last stop */
	int error; /* of what ended tracing: enum pt_error, or 0 */
	bool started; /* the session has the trace unit of this processor */
	bool wanted; /* runs unless there is an error, or no room */
	bool running;
	bool ring;
	bool lapped;
	bool full;
	bool wakes_up; /* the buffer is filled again and again as the reader makes room */
	uint64_t clears; /* how often TraceEn was cleared, and not by the driver */
	uint64_t cleared_at; /* `head`, or `position`, at the last time */
	uint64_t head; /* with wake-ups, as the rest: bytes written */
	uint64_t tail; /* bytes that the reader has consumed */
	uint64_t limit; /* head never exceeds it: the region with STOP ends there */
	uint64_t limit_tail; /* the tail that `limit` was computed from */
	uint64_t stops;
	uint64_t stopped_at[2]; /* `head` at the last stop, and at the one before */
};

/* A trace unit: the driver has one for each processor. */
struct pt_unit {
	const struct pt_ops *ops; /* access the registers of the processor that calls them */
	uint64_t (*ticks)(void); /* the time stamp counter, after all loads before */
	struct pt_state found; /* the registers as the last user left them */
	const struct pt_trace *after; /* was loaded after them */
};

/* Whether a byte from `position` to the end is not zero. All of `bytes` can be written. */
bool pt_memory_used_from(const struct pt_memory *memory, uint64_t position);
/* Whether OUTPUT_BASE leads to the memory. */
bool pt_memory_owns(struct pt_memory *memory, uint64_t base);
/* Sets the output registers for a position. With a single range, the position is 0. */
int pt_memory_output(struct pt_memory *memory, uint64_t position, struct pt_state *state);
/* Gets the position from the output registers. PT_E_FOREIGN: they do not point into the memory. */
int pt_memory_position(struct pt_memory *memory, const struct pt_state *state, uint64_t *position);

/* PT_E_INVALID: `tail` is before the last one or after head, or there are no wake-ups. */
int pt_trace_consume(struct pt_trace *trace, uint64_t tail);
/* Sets what the driver need not add to: all but `error`, and flags of the system. */
void pt_trace_status(const struct pt_trace *trace, struct ptkit_status *status);

/* Tracing waits for room; the position is known. */
void pt_trace_count_stop(struct pt_trace *trace);
/* Another user ended tracing; the position is known. */
void pt_trace_count_clear(struct pt_trace *trace);

#ifdef __cplusplus
}
#endif

#endif /* PTKIT_COMMON_PT_TRACE_H */
