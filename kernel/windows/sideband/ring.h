/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A ring of sideband records. Any thread writes, at PASSIVE_LEVEL or DISPATCH_LEVEL. */
#ifndef PTKIT_WINDOWS_RING_H
#define PTKIT_WINDOWS_RING_H

#include <ntddk.h>

#include "common/pt_ring.h"

struct ptkit_ring {
	struct pt_ring pt;
	KSPIN_LOCK lock; /* for writers */
};

bool ptkit_ring_make(struct ptkit_ring *ring, uint64_t bytes);
void ptkit_ring_free(struct ptkit_ring *ring);
/*
 * Completes the record with the time, the processor and its size, and writes it unless it finds no
 * room. True: the reader should wake up.
 */
bool ptkit_ring_write(struct ptkit_ring *ring, struct ptkit_record *record, uint32_t bytes);
/* Copies from an offset in the ring; it may wrap at the end. */
void ptkit_ring_read(const struct ptkit_ring *ring, uint64_t offset, uint64_t bytes, uint8_t *to);

#endif /* PTKIT_WINDOWS_RING_H */
