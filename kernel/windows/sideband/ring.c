// SPDX-License-Identifier: GPL-2.0 OR MIT
#include "sideband/ring.h"

#include "machine/machine.h"
#include "machine/pool.h"

bool ptkit_ring_make(struct ptkit_ring *ring, uint64_t bytes)
{
	KeInitializeSpinLock(&ring->lock);
	ring->pt.bytes = bytes;
	ring->pt.data = ptkit_allocate((SIZE_T)bytes);
	return ring->pt.data;
}

void ptkit_ring_free(struct ptkit_ring *ring)
{
	ptkit_free(ring->pt.data);
	ring->pt.data = NULL;
}

bool ptkit_ring_write(struct ptkit_ring *ring, struct ptkit_record *record, uint32_t bytes)
{
	bool wakes_up;
	KIRQL level;

	record->size = (uint16_t)bytes;
	KeAcquireSpinLock(&ring->lock, &level);
	record->cpu = ptkit_machine.cpu_here();
	record->tsc = ptkit_machine.ticks(); /* with the lock: records are in the order of time */
	wakes_up = pt_ring_write(&ring->pt, record);
	KeReleaseSpinLock(&ring->lock, level);
	return wakes_up;
}

/* Bytes between tail and head do not change; the others may. */
void ptkit_ring_read(const struct ptkit_ring *ring, uint64_t offset, uint64_t bytes, uint8_t *to)
{
	uint64_t first = min(bytes, ring->pt.bytes - offset);

	RtlCopyMemory(to, ring->pt.data + offset, (SIZE_T)first);
	RtlCopyMemory(to + first, ring->pt.data, (SIZE_T)(bytes - first));
}
