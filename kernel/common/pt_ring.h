/* SPDX-License-Identifier: MIT */
/*
 * A ring of sideband records, with one reader. A record that was not read is never overwritten:
 * records that find no room are counted, and a LOST record precedes the next one.
 */
#ifndef PTKIT_COMMON_PT_RING_H
#define PTKIT_COMMON_PT_RING_H

#include "pt_types.h"
#include "ptkit/ptkit_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pt_ring {
	uint8_t *data; /* null: there is no ring */
	uint64_t bytes; /* a power of two */
	uint64_t head; /* bytes written since the last reset, in whole records */
	uint64_t tail; /* bytes that the reader has consumed */
	uint64_t lost; /* records */
	uint64_t unreported; /* lost records that no LOST record reports yet */
};

/* Empties the ring. There is no writer yet. */
void pt_ring_reset(struct pt_ring *ring);
/*
 * The record is complete. One writer at a time. True: the reader should wake up, as a quarter of
 * the ring waits for it now, or a record was lost.
 */
bool pt_ring_write(struct pt_ring *ring, const struct ptkit_record *record);
/* PT_E_INVALID: `tail` is before the last one or after head. One reader at a time. */
int pt_ring_consume(struct pt_ring *ring, uint64_t tail);
/* Whether at least a quarter of the ring waits for the reader. */
bool pt_ring_is_readable(const struct pt_ring *ring);
void pt_ring_status(const struct pt_ring *ring, struct ptkit_status *status);

#ifdef __cplusplus
}
#endif

#endif /* PTKIT_COMMON_PT_RING_H */
