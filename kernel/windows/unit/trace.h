/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A trace: what a session traces on one processor. */
#ifndef PTKIT_WINDOWS_TRACE_H
#define PTKIT_WINDOWS_TRACE_H

#include "common/pt_trace.h"
#include "machine/waiter.h"
#include "unit/pages.h"

/*
 * Members that tracing changes are changed on the processor of the trace, by functions of
 * ptkit_machine.call(). The lock of units.c guards the other members.
 */
struct ptkit_trace {
	struct pt_trace pt;
	uint32_t cpu;
	struct ptkit_pages pages;
	struct ptkit_pages table_pages; /* with ToPA */
	uint64_t event_bytes; /* an event follows when so many bytes were written */
	uint64_t reported; /* `head` at the last event */
	KTIMER timer;
	KDPC tick; /* of the timer, on the processor of the trace */
	struct ptkit_waiter *waiter; /* of the session */
};

#endif /* PTKIT_WINDOWS_TRACE_H */
