/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A trace: what a session traces on one processor, or of one task. */
#ifndef PTKIT_LINUX_TRACE_H
#define PTKIT_LINUX_TRACE_H

#include <linux/irq_work.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "common/pt_trace.h"

struct ptkit_follow;

/*
 * Members of `pt` that tracing changes are changed on the processor of the trace, with interrupts
 * off or while that processor is offline. The lock of units.c guards the others.
 */
struct ptkit_trace {
	struct pt_trace pt; /* runs on processors that are online, in tasks that are followed */
	unsigned int number; /* in requests: of the processor, or 0 */
	unsigned int cpu; /* the processor of the trace; of one that roams, the last one */
	bool roams; /* goes with a task from processor to processor */
	bool interrupts; /* the processor interrupts when there is little room left */
	struct ptkit_follow *follow; /* null: all tasks are traced */
	u64 reported; /* `head` when the status was read last */
	struct irq_work work; /* wakes up readers from the handler of an interrupt */
	wait_queue_head_t *wait; /* woken up when tracing ends without a request */
};

#endif /* PTKIT_LINUX_TRACE_H */
