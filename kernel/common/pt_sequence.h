/* SPDX-License-Identifier: MIT */
/*
 * The order in which the registers of Processor Trace are accessed. TraceEn is cleared before
 * anything else is written, and set by the very last write: all other registers fault while it is
 * set. Intel SDM vol. 3, chapter "Intel Processor Trace", sections "Enabling and Configuration
 * MSRs", "Flushing Trace Output" and "Context Switch Consideration".
 *
 * All functions access the processor that they run on. The caller must stay on that processor, and
 * no other caller may interrupt it.
 */
#ifndef PTKIT_COMMON_PT_SEQUENCE_H
#define PTKIT_COMMON_PT_SEQUENCE_H

#include "pt_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

#define PT_ADDR_REGISTERS 8 /* ADDR0_A, ADDR0_B, ADDR1_A, ... */

/* The registers of one traced context: loaded when tracing starts, read back when it stops. */
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

/*
 * For another user of the trace unit: pt_seq_keep() reads CTL and the registers that `state` uses,
 * before pt_seq_start(); pt_seq_put_back() writes them after pt_seq_stop(), without TraceEn.
 */
int pt_seq_keep(const struct pt_ops *ops, const struct pt_state *state, struct pt_state *found);
int pt_seq_put_back(const struct pt_ops *ops, const struct pt_state *state,
		    const struct pt_state *found);

/* Clears TraceEn, and waits until all packets are in memory. */
int pt_seq_pause(const struct pt_ops *ops, const struct pt_state *state);

/* Continues after pt_seq_pause(). No register may have been written in between. */
int pt_seq_resume(const struct pt_ops *ops, const struct pt_state *state);

/* Pauses, reads back status and output, and leaves CTL as after a reset. */
int pt_seq_stop(const struct pt_ops *ops, struct pt_state *state);

/*
 * At a context switch: pauses `from` and reads its status and output back, then loads `to`. Either
 * may be null: that context is not traced.
 */
int pt_seq_switch(const struct pt_ops *ops, struct pt_state *from, const struct pt_state *to);

/*
 * In the handler of performance monitoring interrupts: if one came from a ToPA entry with INT,
 * pauses, reads back status and output, and acknowledges it; pt_seq_start() goes on. Otherwise
 * `pending` is false, and nothing was written.
 */
int pt_seq_interrupt(const struct pt_ops *ops, struct pt_state *state, bool *pending);

/*
 * As pt_seq_interrupt(), whether or not the interrupt is still pending: another handler of such
 * interrupts may have acknowledged it.
 */
int pt_seq_serve(const struct pt_ops *ops, struct pt_state *state);

/* The status to continue with after an error or a stop. */
uint64_t pt_status_restarted(uint64_t status);

#ifdef __cplusplus
}
#endif

#endif /* PTKIT_COMMON_PT_SEQUENCE_H */
