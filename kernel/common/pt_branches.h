/* SPDX-License-Identifier: MIT */
/*
 * A trace by Branch Trace Store: the processor writes a record of every branch to a buffer. The DS
 * area has the linear addresses of the buffer. Without an interrupt the buffer is a ring. With an
 * interrupt, the DS area has the part of the buffer that is free; the interrupt comes some records
 * before the end of that part, and the driver lays out the next one, or recording ends.
 *
 * The page tables of user code must map these addresses. Where user code has page tables of its own
 * (page-table isolation, KVA shadow) they do not: drivers do not offer it there.
 *
 * Records have no time: marks around each part have it, and the thread that runs then.
 */
#ifndef PTKIT_COMMON_PT_BRANCHES_H
#define PTKIT_COMMON_PT_BRANCHES_H

#include "pt_bts.h"
#include "pt_trace.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pt_bts {
	struct pt_ds_area area;
	struct pt_bts_state state;
	uint64_t reserve; /* records after the threshold; 0: a ring */
	uint64_t wake_up; /* records between two interrupts, at most */
	struct ptkit_branch_mark thread; /* that runs; the driver sets it */
};

/* Makes `bts`, which is zero, that of the trace. The memory of the trace is mapped. */
void pt_branches_init(struct pt_trace *trace, struct pt_bts *bts,
		      const struct ptkit_config *config);

/* For pt_unit.c. See the functions of these names there. */
int pt_branches_reset(struct pt_trace *trace);
bool pt_branches_make_room(struct pt_trace *trace);
int pt_branches_start(const struct pt_unit *unit, struct pt_trace *trace);
bool pt_branches_stop(const struct pt_unit *unit, struct pt_trace *trace);

/* Whether the buffer has reached the threshold of the interrupt. */
bool pt_branches_interrupt(const struct pt_bts *bts);
/* Whether no branch was recorded since the start. */
bool pt_branches_are_none(const struct pt_bts *bts);

#ifdef __cplusplus
}
#endif

#endif /* PTKIT_COMMON_PT_BRANCHES_H */
