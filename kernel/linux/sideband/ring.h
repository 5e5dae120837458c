/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A ring of records. Readers map it; a record that was not read is never overwritten. */
#ifndef PTKIT_LINUX_RING_H
#define PTKIT_LINUX_RING_H

#include <linux/irq_work.h>
#include <linux/mm_types.h>
#include <linux/spinlock_types.h>
#include <linux/types.h>
#include <linux/wait.h>

#include "ptkit/ptkit_ioctl.h"

struct ptkit_ring {
	u8 *data;
	u64 bytes; /* a power of two */
	raw_spinlock_t lock; /* for writers: head, lost, unreported */
	u64 head; /* bytes written */
	u64 tail; /* bytes that the reader has consumed */
	u64 lost; /* records */
	u64 unreported; /* lost records that no LOST record reports yet */
	struct irq_work work; /* wakes up readers */
	wait_queue_head_t *wait;
};

int ptkit_ring_make(struct ptkit_ring *ring, u64 bytes, wait_queue_head_t *wait);
/* Accepts a zeroed ring, too. No writer may use the ring any more. */
void ptkit_ring_free(struct ptkit_ring *ring);
/* Empties the ring. No writer may use the ring yet. */
void ptkit_ring_reset(struct ptkit_ring *ring);
int ptkit_ring_map(const struct ptkit_ring *ring, struct vm_area_struct *vma);

/*
 * Writes a record of `bytes` bytes, a multiple of 8; the caller has set type, pid and tid. Handlers
 * of NMIs must not call this.
 */
void ptkit_ring_write(struct ptkit_ring *ring, struct ptkit_record *record, size_t bytes);
/* -EINVAL: `tail` is before the last tail or after head. One reader at a time. */
int ptkit_ring_consume(struct ptkit_ring *ring, u64 tail);
/* Whether at least a quarter of the ring waits for the reader. */
bool ptkit_ring_readable(const struct ptkit_ring *ring);
/* Bytes written since the last reset. */
u64 ptkit_ring_head(const struct ptkit_ring *ring);

#endif /* PTKIT_LINUX_RING_H */
