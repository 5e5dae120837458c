/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A ring of records that readers map. */
#ifndef PTKIT_LINUX_RING_H
#define PTKIT_LINUX_RING_H

#include <linux/irq_work.h>
#include <linux/mm_types.h>
#include <linux/spinlock_types.h>
#include <linux/wait.h>

#include "common/pt_ring.h"

struct ptkit_ring {
	struct pt_ring pt;
	raw_spinlock_t lock; /* for writers */
	struct irq_work work; /* wakes up readers */
	wait_queue_head_t *wait;
};

int ptkit_ring_make(struct ptkit_ring *ring, u64 bytes, wait_queue_head_t *wait);
/* Accepts a zeroed ring, too. No writer may use the ring any more. */
void ptkit_ring_free(struct ptkit_ring *ring);
int ptkit_ring_map(const struct ptkit_ring *ring, struct vm_area_struct *vma);
/*
 * Writes a record of `bytes` bytes, a multiple of 8; the caller has set type, pid and tid. Handlers
 * of NMIs must not call this.
 */
void ptkit_ring_write(struct ptkit_ring *ring, struct ptkit_record *record, size_t bytes);

#endif /* PTKIT_LINUX_RING_H */
