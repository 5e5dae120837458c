// SPDX-License-Identifier: GPL-2.0 OR MIT
#include <linux/errno.h>
#include <linux/mm.h>
#include <linux/smp.h>
#include <linux/spinlock.h>
#include <linux/vmalloc.h>

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
	ring->pt.bytes = bytes;
	/* Zeroed: mappings show it. */
	ring->pt.data = __vmalloc(bytes, GFP_KERNEL_ACCOUNT | __GFP_ZERO | __GFP_NOWARN);
	return ring->pt.data ? 0 : -ENOMEM;
}

void ptkit_ring_free(struct ptkit_ring *ring)
{
	if (!ring->pt.data)
		return;
	irq_work_sync(&ring->work);
	vfree(ring->pt.data);
	ring->pt.data = NULL;
}

int ptkit_ring_map(const struct ptkit_ring *ring, struct vm_area_struct *vma)
{
	unsigned long address;
	const u8 *page = ring->pt.data;

	for (address = vma->vm_start; address < vma->vm_end; address += PAGE_SIZE) {
		int error = vm_insert_page(vma, address, vmalloc_to_page(page));

		if (error)
			return error;
		page += PAGE_SIZE;
	}
	return 0;
}

void ptkit_ring_write(struct ptkit_ring *ring, struct ptkit_record *record, size_t bytes)
{
	unsigned long flags;

	record->size = bytes;
	raw_spin_lock_irqsave(&ring->lock, flags);
	record->cpu = smp_processor_id();
	record->tsc = rdtsc_ordered(); /* with the lock: records are in the order of time */
	if (pt_ring_write(&ring->pt, record))
		irq_work_queue(&ring->work);
	raw_spin_unlock_irqrestore(&ring->lock, flags);
}
