/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Branch Trace Store. */
#ifndef PTKIT_WINDOWS_BTS_H
#define PTKIT_WINDOWS_BTS_H

#include "unit/trace.h"

uint32_t ptkit_bts_make(struct ptkit_trace *trace, const struct ptkit_config *config);
void ptkit_bts_free(struct ptkit_trace *trace);

/* The rest is called on the processor of the trace, with interrupts off. Results: PTKIT_REASON_*.
 */
uint32_t ptkit_bts_reset(struct ptkit_trace *trace);
/* Lays out the free part of the buffer. False: there is none, and trace->full is set. */
bool ptkit_bts_make_room(struct ptkit_trace *trace);
uint32_t ptkit_bts_start(struct ptkit_trace *trace);
uint32_t ptkit_bts_stop(struct ptkit_trace *trace);
/* Whether the buffer has reached the threshold of the interrupt. */
bool ptkit_bts_pends(const struct ptkit_trace *trace);
/* Whether no branch was recorded since the start. */
bool ptkit_bts_is_empty(const struct ptkit_trace *trace);

#endif /* PTKIT_WINDOWS_BTS_H */
