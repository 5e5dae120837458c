// SPDX-License-Identifier: GPL-2.0 OR MIT
#include <linux/errno.h>
#include <linux/mm.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/vmalloc.h>

#include <asm/barrier.h>
#include <asm/tsc.h>

#include "sideband/ring.h"

static void wake_up_readers(struct irq_work *work)
{
	struct ptkit_ring *ring = container_of(work, struct ptkit_ring, work);

	wake_up_interruptible(ring->wait);
}

int ptkit_ring_make(struct ptkit_ring *ring, u64 bytes, wait_queue_head_t *wait)
{
	raw_spin_lock_init(&ring->lock);
	init_irq_work(&ring->work, wake_up_readers);
	ring->wait = wait;
	ring->bytes = bytes;
	/* Zeroed: mappings show it. */
	ring->data = __vmalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
	return ring->data ? 0 : -ENOMEM;
}

void ptkit_ring_free(struct ptkit_ring *ring)
{
	if (!ring->data)
		return;
	irq_work_sync(&ring->work);
	vfree(ring->data);
	ring->data = NULL;
}

void ptkit_ring_reset(struct ptkit_ring *ring)
{
	memset(ring->data, 0, ring->bytes);
	ring->tail = 0;
	ring->lost = 0;
	ring->unreported = 0;
	smp_store_release(&ring->head, 0); /* pairs with ptkit_ring_head() */
}

int ptkit_ring_map(const struct ptkit_ring *ring, struct vm_area_struct *vma)
{
	unsigned long address;
	const u8 *place = ring->data;

	for (address = vma->vm_start; address < vma->vm_end; address += PAGE_SIZE) {
		int error = vm_insert_page(vma, address, vmalloc_to_page(place));

		if (error)
			return error;
		place += PAGE_SIZE;
	}
	return 0;
}

/* Copies to a position after head; wraps at the end of the ring. */
static void put(struct ptkit_ring *ring, u64 position, const void *from, size_t bytes)
{
	size_t place = position & (ring->bytes - 1);
	size_t first = min_t(u64, bytes, ring->bytes - place);

	memcpy(ring->data + place, from, first);
	memcpy(ring->data, from + first, bytes - first);
}

static void put_record(struct ptkit_ring *ring, const struct ptkit_record *record)
{
	u64 head = ring->head;

	put(ring, head, record, record->size);
	smp_store_release(&ring->head, head + record->size); /* pairs with ptkit_ring_head() */
}

/* Writes a LOST record of the records that found no room. It has the time of the next record. */
static void report_losses(struct ptkit_ring *ring, const struct ptkit_record *next)
{
	struct ptkit_record_lost lost = {
		.record = {
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

static u64 quarters(u64 head, u64 tail, u64 bytes)
{
	return (head - tail) / (bytes / 4);
}

void ptkit_ring_write(struct ptkit_ring *ring, struct ptkit_record *record, size_t bytes)
{
	unsigned long flags;
	u64 needed;
	u64 before;
	u64 tail;

	record->size = bytes;
	raw_spin_lock_irqsave(&ring->lock, flags);
	record->cpu = smp_processor_id();
	record->tsc = rdtsc_ordered(); /* with the lock: records are in the order of time */
	tail = smp_load_acquire(&ring->tail); /* pairs with ptkit_ring_consume() */
	before = ring->head;
	needed = bytes + (ring->unreported ? sizeof(struct ptkit_record_lost) : 0);
	if (needed <= ring->bytes - (before - tail)) {
		report_losses(ring, record);
		put_record(ring, record);
	} else {
		WRITE_ONCE(ring->lost, ring->lost + 1);
		ring->unreported++;
	}
	if (!quarters(before, tail, ring->bytes) && quarters(ring->head, tail, ring->bytes))
		irq_work_queue(&ring->work);
	raw_spin_unlock_irqrestore(&ring->lock, flags);
}

int ptkit_ring_consume(struct ptkit_ring *ring, u64 tail)
{
	if (tail < ring->tail || tail > ptkit_ring_head(ring))
		return -EINVAL;
	smp_store_release(&ring->tail, tail); /* pairs with ptkit_ring_write() */
	return 0;
}

bool ptkit_ring_readable(const struct ptkit_ring *ring)
{
	return ring->data &&
	       quarters(ptkit_ring_head(ring), READ_ONCE(ring->tail), ring->bytes);
}

u64 ptkit_ring_head(const struct ptkit_ring *ring)
{
	return smp_load_acquire(&ring->head); /* pairs with put_record() */
}
