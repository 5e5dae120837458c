// SPDX-License-Identifier: MIT
#include "pt_trace.h"

#include "pt_ops.h"

void pt_trace_count_stop(struct pt_trace *trace)
{
	trace->stops++;
	trace->stopped_at[1] = trace->stopped_at[0];
	trace->stopped_at[0] = trace->head;
}

void pt_trace_count_clear(struct pt_trace *trace)
{
	trace->clears++;
	trace->cleared_at = trace->wakes_up ? trace->head : trace->position;
}

int pt_trace_consume(struct pt_trace *trace, uint64_t tail)
{
	if (!trace->wakes_up || tail < trace->tail || tail > PT_READ_ONCE(trace->head))
		return PT_E_INVALID;
	PT_WRITE_ONCE(trace->tail, tail);
	return 0;
}

void pt_trace_status(const struct pt_trace *trace, struct ptkit_status *status)
{
	status->flags = (trace->started ? PTKIT_STATUS_STARTED : 0) |
			(trace->running ? PTKIT_STATUS_RUNNING : 0) |
			(trace->lapped ? PTKIT_STATUS_LAPPED : 0) |
			(trace->full ? PTKIT_STATUS_FULL : 0) |
			(trace->clears ? PTKIT_STATUS_CLEARED : 0);
	status->position = trace->position;
	status->rtit_status = trace->state.status;
	status->head = trace->head;
	status->tail = trace->tail;
	status->stops = trace->stops;
	status->stopped_at[0] = trace->stopped_at[0];
	status->stopped_at[1] = trace->stopped_at[1];
	status->clears = trace->clears;
	status->cleared_at = trace->cleared_at;
}
