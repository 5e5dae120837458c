/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A trace: what a session traces on one processor, or of one task. */
#ifndef PTKIT_LINUX_TRACE_H
#define PTKIT_LINUX_TRACE_H

#include <linux/irq_work.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "common/pt_sequence.h"
#include "unit/memory.h"

struct ptkit_follow;
struct ptkit_bts;

/*
 * Members that tracing changes are changed on the processor of the trace, with interrupts off or
 * while that processor is offline. The lock of units.c guards the other members.
 */
struct ptkit_trace {
	unsigned int number; /* in requests: of the processor, or 0 */
	unsigned int cpu; /* the processor of the trace; of one that roams, the last one */
	bool roams; /* goes with a task from processor to processor */
	struct ptkit_follow *follow; /* null: all tasks are traced */
	struct ptkit_memory memory;
	struct ptkit_bts *bts; /* null: Processor Trace */
	struct pt_state state; /* as last loaded, or read back */
	u64 position; /* at the last stop */
	int error;
	bool started; /* the session has the trace unit of this processor */
	/* The trace runs whenever the processor is online and runs a task that is followed. */
	bool wanted;
	bool running;
	bool ring;
	bool lapped;
	bool full;
	u64 clears; /* how often TraceEn was cleared, and not by the driver */
	u64 cleared_at; /* `head`, or `position`, at the last time */
	bool interrupts; /* the processor interrupts when there is little room left */
	bool wakes_up; /* these interrupts wake up readers; the next seven members are for this */
	u64 head; /* bytes written */
	u64 tail; /* bytes that the reader has consumed */
	u64 limit; /* head never exceeds it: the region with STOP ends there */
	u64 limit_tail; /* the tail that `limit` was computed from */
	u64 stops;
	u64 stopped_at[2]; /* `head` at the last stop, and at the one before */
	u64 reported; /* `head` when the status was read last */
	struct irq_work work; /* wakes up readers from the handler of an interrupt */
	wait_queue_head_t *wait; /* woken up when tracing ends without a request */
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

#endif /* PTKIT_LINUX_TRACE_H */
