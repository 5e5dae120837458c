/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A trace: what a session traces on one processor. */
#ifndef PTKIT_WINDOWS_TRACE_H
#define PTKIT_WINDOWS_TRACE_H

#include "machine/waiter.h"
#include "unit/memory.h"

struct ptkit_bts;

/*
 * Members that tracing changes are changed on the processor of the trace, by functions of
 * ptkit_machine.call(). The lock of units.c guards the other members.
 */
struct ptkit_trace {
	uint32_t cpu;
	struct ptkit_memory memory;
	struct ptkit_bts *bts; /* null: Processor Trace */
	struct pt_state state; /* as last loaded, or read back */
	uint64_t position; /* at the last stop */
	uint32_t reason; /* PTKIT_REASON_* of what ended tracing, or 0 */
	bool started; /* the session has the trace unit of this processor */
	volatile bool wanted; /* runs unless there is a reason, or no room */
	bool running;
	bool ring;
	bool lapped;
	bool full;
	bool wakes_up; /* the buffer is filled again and again as the reader makes room */
	uint64_t clears; /* how often TraceEn was cleared, and not by the driver */
	uint64_t cleared_at; /* `head`, or `position`, at the last time */
	volatile uint64_t head; /* bytes written */
	volatile uint64_t tail; /* bytes that the reader has consumed */
	uint64_t event_bytes; /* an event follows when so many bytes were written */
	uint64_t reported; /* `head` at the last event */
	uint64_t limit; /* head never exceeds it: the region with STOP ends there */
	uint64_t limit_tail; /* the tail that `limit` was computed from */
	uint64_t stops;
	uint64_t stopped_at[2]; /* `head` at the last stop, and at the one before */
	KTIMER timer;
	KDPC tick; /* of the timer, on the processor of the trace */
	struct ptkit_waiter *waiter; /* of the session */
};

/* Tracing waits for room; the position is known. */
static inline void ptkit_count_stop(struct ptkit_trace *trace)
{
	trace->stops++;
	trace->stopped_at[1] = trace->stopped_at[0];
	trace->stopped_at[0] = trace->head;
}

/* Another user ended tracing; the position is known. */
static inline void ptkit_note_cleared(struct ptkit_trace *trace)
{
	trace->clears++;
	trace->cleared_at = trace->wakes_up ? trace->head : trace->position;
}

#endif /* PTKIT_WINDOWS_TRACE_H */
