// SPDX-License-Identifier: MIT
#include "pt_ring.h"

#include "pt_ops.h"

/*
 * A reader that sees a head sees the records before it. A writer that sees a tail may overwrite the
 * records before it.
 */
void pt_ring_reset(struct pt_ring *ring)
{
	__builtin_memset(ring->data, 0, ring->bytes);
	ring->tail = 0;
	ring->lost = 0;
	ring->unreported = 0;
	PT_STORE_RELEASE(ring->head, 0);
}

/* Copies to the head; wraps at the end of the ring. */
static void put(struct pt_ring *ring, const struct ptkit_record *record)
{
	uint64_t offset = ring->head & (ring->bytes - 1);
	uint64_t rest = ring->bytes - offset;
	uint64_t first = record->size < rest ? record->size : rest;

	__builtin_memcpy(ring->data + offset, record, first);
	__builtin_memcpy(ring->data, (const uint8_t *)record + first, record->size - first);
	PT_STORE_RELEASE(ring->head, ring->head + record->size);
}

/* Writes a LOST record of the records that found no room. It has the time of the next record. */
static void report_losses(struct pt_ring *ring, const struct ptkit_record *next)
{
	struct ptkit_record_lost lost = {.record = *next, .count = ring->unreported};

	if (!ring->unreported)
		return;
	lost.record.type = PTKIT_RECORD_LOST;
	lost.record.size = sizeof(lost);
	lost.record.pid = 0;
	lost.record.tid = 0;
	put(ring, &lost.record);
	ring->unreported = 0;
}

static bool has_quarter(const struct pt_ring *ring, uint64_t head, uint64_t tail)
{
	return head - tail >= ring->bytes / 4;
}

bool pt_ring_write(struct pt_ring *ring, const struct ptkit_record *record)
{
	uint64_t tail = PT_LOAD_ACQUIRE(ring->tail);
	uint64_t before = ring->head;
	uint64_t needed = record->size;

	if (ring->unreported)
		needed += sizeof(struct ptkit_record_lost);
	if (needed > ring->bytes - (before - tail)) {
		PT_WRITE_ONCE(ring->lost, ring->lost + 1);
		ring->unreported++;
		return ring->unreported == 1;
	}
	report_losses(ring, record);
	put(ring, record);
	return !has_quarter(ring, before, tail) && has_quarter(ring, ring->head, tail);
}

int pt_ring_consume(struct pt_ring *ring, uint64_t tail)
{
	if (tail < ring->tail || tail > PT_LOAD_ACQUIRE(ring->head))
		return PT_E_INVALID;
	PT_STORE_RELEASE(ring->tail, tail);
	return 0;
}

bool pt_ring_is_readable(const struct pt_ring *ring)
{
	return ring->data && has_quarter(ring, PT_LOAD_ACQUIRE(ring->head), PT_READ_ONCE(ring->tail));
}

void pt_ring_status(const struct pt_ring *ring, struct ptkit_status *status)
{
	status->sideband_head = PT_LOAD_ACQUIRE(ring->head);
	status->sideband_tail = PT_READ_ONCE(ring->tail);
	status->sideband_lost = PT_READ_ONCE(ring->lost);
}
