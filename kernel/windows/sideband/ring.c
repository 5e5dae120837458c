// SPDX-License-Identifier: GPL-2.0 OR MIT
#include "sideband/ring.h"

#include "machine/machine.h"
#include "machine/pool.h"

bool ptkit_ring_make(struct ptkit_ring *ring, uint64_t bytes)
{
	KeInitializeSpinLock(&ring->lock);
	ring->bytes = bytes;
	ring->data = ptkit_allocate((SIZE_T)bytes);
	return ring->data;
}

void ptkit_ring_free(struct ptkit_ring *ring)
{
	ptkit_free(ring->data);
	ring->data = NULL;
}

void ptkit_ring_reset(struct ptkit_ring *ring)
{
	RtlZeroMemory(ring->data, (SIZE_T)ring->bytes);
	ring->head = 0;
	ring->tail = 0;
	ring->lost = 0;
	ring->unreported = 0;
}

/* Copies to the head; wraps at the end of the ring. */
static void put_record(struct ptkit_ring *ring, const struct ptkit_record *record)
{
	uint64_t place = ring->head & (ring->bytes - 1);
	uint64_t first = min(record->size, ring->bytes - place);

	RtlCopyMemory(ring->data + place, record, (SIZE_T)first);
	RtlCopyMemory(ring->data, (const uint8_t *)record + first, (SIZE_T)(record->size - first));
	ring->head += record->size;
}

/* Writes a LOST record of the records that found no room. It has the time of the next record. */
static void report_losses(struct ptkit_ring *ring, const struct ptkit_record *next)
{
	struct ptkit_record_lost lost = {
		.record =
			{
				.type = PTKIT_RECORD_LOST,
				.size = sizeof(lost),
				.cpu = next->cpu,
				.tsc = next->tsc,
			},
		.count = ring->unreported,
	};

	if (!ring->unreported)
		return;
	put_record(ring, &lost.record);
	ring->unreported = 0;
}

static bool has_quarter(const struct ptkit_ring *ring, uint64_t head)
{
	return head - ring->tail >= ring->bytes / 4;
}

bool ptkit_ring_write(struct ptkit_ring *ring, struct ptkit_record *record, uint32_t bytes)
{
	uint64_t needed = bytes;
	uint64_t before;
	bool wakes_up;
	KIRQL level;

	record->size = (uint16_t)bytes;
	KeAcquireSpinLock(&ring->lock, &level);
	record->cpu = ptkit_machine.cpu_here();
	record->tsc = ptkit_machine.ticks(); /* with the lock: records are in the order of time */
	before = ring->head;
	if (ring->unreported)
		needed += sizeof(struct ptkit_record_lost);
	if (needed <= ring->bytes - (before - ring->tail)) {
		report_losses(ring, record);
		put_record(ring, record);
	} else {
		ring->lost++;
		ring->unreported++;
	}
	wakes_up = ring->unreported == 1 ||
	       (!has_quarter(ring, before) && has_quarter(ring, ring->head));
	KeReleaseSpinLock(&ring->lock, level);
	return wakes_up;
}

bool ptkit_ring_consume(struct ptkit_ring *ring, uint64_t tail)
{
	bool valid;
	KIRQL level;

	KeAcquireSpinLock(&ring->lock, &level);
	valid = tail >= ring->tail && tail <= ring->head;
	if (valid)
		ring->tail = tail;
	KeReleaseSpinLock(&ring->lock, level);
	return valid;
}

/* Bytes between tail and head do not change; the others may. */
void ptkit_ring_read(struct ptkit_ring *ring, uint64_t offset, uint64_t bytes, uint8_t *to)
{
	uint64_t first = min(bytes, ring->bytes - offset);

	RtlCopyMemory(to, ring->data + offset, (SIZE_T)first);
	RtlCopyMemory(to + first, ring->data, (SIZE_T)(bytes - first));
}

void ptkit_ring_status(struct ptkit_ring *ring, struct ptkit_status *status)
{
	KIRQL level;

	KeAcquireSpinLock(&ring->lock, &level);
	status->sideband_head = ring->head;
	status->sideband_tail = ring->tail;
	status->sideband_lost = ring->lost;
	KeReleaseSpinLock(&ring->lock, level);
}
