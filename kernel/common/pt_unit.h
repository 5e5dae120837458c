/* SPDX-License-Identifier: MIT */
/*
 * Steps of a trace unit, or Branch Trace Store, for a trace: where it writes, and where it has to
 * wait for room. The driver decides when a trace runs.
 *
 * Others use the same registers: perf, Windows' own Intel PT support, profilers, hypervisors. So
 * the registers are read before a trace is loaded, and put back when it is unloaded.
 */
#ifndef PTKIT_COMMON_PT_UNIT_H
#define PTKIT_COMMON_PT_UNIT_H

#include "pt_trace.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Empties the buffer of a trace that does not run. */
int pt_unit_reset(struct pt_trace *trace);

/* The rest is called on the processor of the trace. trace->error has the results. */

/* Whether the trace can go on after a stop: there is room, and no error. */
bool pt_unit_has_room(struct pt_trace *trace);
/* As pt_unit_has_room(), for a trace that is not loaded: also reads registers that it changes. */
bool pt_unit_prepare(struct pt_unit *unit, struct pt_trace *trace);
void pt_unit_start(struct pt_unit *unit, struct pt_trace *trace);
/*
 * `acknowledges` the interrupt of ToPA, pending or not. The trace still runs if a register could
 * not be written. True: another user had ended tracing.
 */
bool pt_unit_stop(struct pt_unit *unit, struct pt_trace *trace, bool acknowledges);
/* Puts registers back, unless the trace still runs, or another user has loaded its own. */
void pt_unit_leave(const struct pt_unit *unit, struct pt_trace *trace);

/* Whether an interrupt for the trace is not acknowledged. */
bool pt_unit_interrupts(const struct pt_unit *unit, const struct pt_trace *trace);
/* Whether the unit traces no more until it is served. */
bool pt_unit_has_stopped(const struct pt_unit *unit, const struct pt_trace *trace);
/* Acknowledges that interrupt. That of Branch Trace Store is acknowledged at each stop. */
void pt_unit_acknowledge(const struct pt_unit *unit, const struct pt_trace *trace);
/*
 * VMXON clears TraceEn on a processor that cannot trace in VMX operation. Other software may clear
 * it, too. The end of a buffer, a TraceStop range and errors do not clear it; STATUS reports them.
 */
bool pt_unit_is_cleared(const struct pt_unit *unit, const struct pt_trace *trace);
/* Whether the unit writes to the buffer. trace->running may differ: hypervisors restore registers.
 */
bool pt_unit_is_live(const struct pt_unit *unit, struct pt_trace *trace);

#ifdef __cplusplus
}
#endif

#endif /* PTKIT_COMMON_PT_UNIT_H */
