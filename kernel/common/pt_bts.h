/* SPDX-License-Identifier: MIT */
/*
 * Branch Trace Store: every branch as a record in a buffer that the DS area names.
 * Intel SDM vol. 3, chapter "Debug, Branch Profile, TSC, ...", sections "BTS and DS Save Area" and
 * "Setting Up the DS Save Area". Structures are those of 64-bit mode. A 32-bit system has the same
 * fields with words of 4 bytes.
 */
#ifndef PTKIT_COMMON_PT_BTS_H
#define PTKIT_COMMON_PT_BTS_H

#include "pt_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The DS buffer management area; addresses are linear. */
struct pt_ds_area {
	uint64_t bts_base;
	uint64_t bts_index; /* where the next record goes; the processor's */
	uint64_t bts_maximum; /* the first byte after the buffer */
	uint64_t bts_threshold; /* an interrupt when the index gets here */
	uint64_t pebs_base;
	uint64_t pebs_index;
	uint64_t pebs_maximum;
	uint64_t pebs_threshold;
	uint64_t pebs_counter_reset[24];
};

struct pt_bts_record {
	uint64_t from;
	uint64_t to;
	uint64_t flags;
};

#define PT_BTS_FLAG_PREDICTED 4 /* bit number */

/* Registers that pt_bts_start() changes, for pt_bts_stop() to undo. */
struct pt_bts_state {
	uint64_t ds_area; /* linear address of the area */
	/* The bits to set: TR, BTS, and of BTINT, BTS_OFF_OS, BTS_OFF_USR those that apply. */
	uint64_t debugctl;
	uint64_t saved_ds_area;
};

/*
 * Lays out an empty buffer. Records are three words of `word` bytes: 8, or 4 on a 32-bit system.
 * `reserve` records lie between the threshold and the end: the processor writes them before the
 * interrupt is served. 0: there is no interrupt, and the buffer is a ring.
 * PT_E_INVALID unless the buffer is aligned to a word and holds more than `reserve` records.
 */
int pt_bts_layout(struct pt_ds_area *area, uint64_t buffer, uint64_t bytes, uint32_t word,
		  uint64_t reserve);

/* Bits of DEBUGCTL. `interrupt`: as the buffer was laid out. */
uint64_t pt_bts_debugctl(bool os, bool user, bool interrupt);

/*
 * Writes DS_AREA, then DEBUGCTL, and keeps the other bits of DEBUGCTL. PT_E_BUSY, with nothing
 * written, if TR or BTS is set already.
 */
int pt_bts_start(const struct pt_ops *ops, struct pt_bts_state *state);

/* Clears the bits of DEBUGCTL. Records are in memory, and the index is right, afterwards. */
int pt_bts_pause(const struct pt_ops *ops);

/* Sets the bits of DEBUGCTL again. */
int pt_bts_resume(const struct pt_ops *ops, const struct pt_bts_state *state);

/* As pt_bts_pause(), then restores DS_AREA. */
int pt_bts_stop(const struct pt_ops *ops, const struct pt_bts_state *state);

/* Bytes of the buffer that are used for records, and the position of the next record. */
uint64_t pt_bts_size(const struct pt_ds_area *area);
uint64_t pt_bts_position(const struct pt_ds_area *area);

#ifdef __cplusplus
}
#endif

#endif /* PTKIT_COMMON_PT_BTS_H */
