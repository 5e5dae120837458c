/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A ring of sideband records. Any thread writes at PASSIVE_LEVEL or DISPATCH_LEVEL; one reader
 * consumes. */
#ifndef PTKIT_WINDOWS_RING_H
#define PTKIT_WINDOWS_RING_H

#include <ntddk.h>

#include <stdbool.h>
#include <stdint.h>

#include "ptkit/ptkit_windows.h"

struct ptkit_ring {
	KSPIN_LOCK lock;
	uint8_t *data; /* null: there is no ring */
	uint64_t bytes; /* a power of two */
	uint64_t head; /* bytes written since the beginning, in whole records */
	uint64_t tail; /* bytes that the reader has consumed */
	uint64_t lost; /* records that found no room */
	uint64_t unreported; /* of them, those that no LOST record has */
};

bool ptkit_ring_make(struct ptkit_ring *ring, uint64_t bytes);
void ptkit_ring_free(struct ptkit_ring *ring);
void ptkit_ring_reset(struct ptkit_ring *ring);
/*
 * Completes the record with the time, the processor and its size, and writes it unless it finds no
 * room. True: the reader should wake up.
 */
bool ptkit_ring_write(struct ptkit_ring *ring, struct ptkit_record *record, uint32_t bytes);
/* False: the tail is not between the last one and the head. */
bool ptkit_ring_consume(struct ptkit_ring *ring, uint64_t tail);
void ptkit_ring_read(struct ptkit_ring *ring, uint64_t offset, uint64_t bytes, uint8_t *to);
void ptkit_ring_status(struct ptkit_ring *ring, struct ptkit_status *status);

#endif /* PTKIT_WINDOWS_RING_H */
