/* SPDX-License-Identifier: MIT */
/*
 * The order in which the registers of Processor Trace are accessed. TraceEn is cleared before
 * anything else is written, and set by the very last write: all other registers fault while it is
 * set. Intel SDM vol. 3, chapter "Intel Processor Trace", sections "Enabling and Configuration
 * MSRs", "Flushing Trace Output" and "Context Switch Consideration".
 *
 * All functions concern the processor that they run on; the caller must stay on it, and must not be
 * interrupted by anybody else who calls them.
 */
#ifndef PTKIT_COMMON_PT_SEQUENCE_H
#define PTKIT_COMMON_PT_SEQUENCE_H

#include "pt_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PT_ADDR_REGISTERS 8 /* ADDR0_A, ADDR0_B, ADDR1_A, ... */

/* One traced context: what is loaded to trace it, and read back when that ends. */
struct pt_state {
	uint64_t ctl; /* TraceEn does not matter: the sequences set and clear it */
	uint64_t status;
	uint64_t output_base; /* output_* are not used with FabricEn */
	uint64_t output_mask_ptrs;
	uint64_t cr3_match; /* used with CR3Filter */
	uint64_t addr[PT_ADDR_REGISTERS]; /* used where ADDRn_CFG is not 0 */
};

/*
 * Loads everything, and sets TraceEn. A fresh context has the status 0. PT_E_BUSY, with nothing
 * written, if TraceEn is set already. After PT_E_FAULT nothing is traced.
 */
int pt_seq_start(const struct pt_ops *ops, const struct pt_state *state);

/* Clears TraceEn, and waits until what was traced is in memory. */
int pt_seq_pause(const struct pt_ops *ops, const struct pt_state *state);

/* Goes on where pt_seq_pause() left off; nothing else may have been written in between. */
int pt_seq_resume(const struct pt_ops *ops, const struct pt_state *state);

/* Pauses, reads back status and output, and leaves CTL as after a reset. */
int pt_seq_stop(const struct pt_ops *ops, struct pt_state *state);

/*
 * At a context switch: pauses `from` and reads its status and output back, then loads `to`. Either
 * may be null: nothing was, or will be, traced.
 */
int pt_seq_switch(const struct pt_ops *ops, struct pt_state *from, const struct pt_state *to);

/*
 * In the handler of performance monitoring interrupts: if one came from a ToPA entry with INT,
 * pauses, reads back status and output, and acknowledges it; pt_seq_start() goes on. Otherwise
 * `pending` is false, and nothing was written.
 */
int pt_seq_interrupt(const struct pt_ops *ops, struct pt_state *state, bool *pending);

/* The status with which a context goes on that had an error or was stopped. */
uint64_t pt_status_restarted(uint64_t status);

#ifdef __cplusplus
}
#endif

#endif /* PTKIT_COMMON_PT_SEQUENCE_H */
