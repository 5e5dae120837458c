/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A ring of records that is read through a mapping: nothing that was not read is overwritten. */
#ifndef PTKIT_LINUX_RING_H
#define PTKIT_LINUX_RING_H

#include <linux/irq_work.h>
#include <linux/mm_types.h>
#include <linux/spinlock_types.h>
#include <linux/types.h>
#include <linux/wait.h>

struct ptkit_ring {
	u8 *data;
	u64 bytes; /* a power of two */
	raw_spinlock_t lock; /* of writers: head and what is lost */
	u64 head; /* bytes written */
	u64 tail; /* bytes given back by the reader */
	u64 lost; /* records */
	u64 untold; /* of them, those that no LOST record tells of yet */
	struct irq_work work; /* wakes up who waits */
	wait_queue_head_t *wait;
};

int ptkit_ring_make(struct ptkit_ring *ring, u64 bytes, wait_queue_head_t *wait);
/* Also of one that was never made, if it is zero. Nobody writes any more. */
void ptkit_ring_free(struct ptkit_ring *ring);
/* Empty, as at the beginning. Nobody writes yet. */
void ptkit_ring_reset(struct ptkit_ring *ring);
int ptkit_ring_map(const struct ptkit_ring *ring, struct vm_area_struct *vma);

/*
 * Writes a record of which type, pid and tid are set, and, if `text` is not null, that text behind
 * it. From anywhere but handlers of NMIs.
 */
void ptkit_ring_write(struct ptkit_ring *ring, struct ptkit_record *record, size_t bytes,
		      const char *text);
/* -EINVAL if there are not so many bytes. One reader at a time. */
int ptkit_ring_consume(struct ptkit_ring *ring, u64 tail);
/* Whether a quarter or more waits to be read. */
bool ptkit_ring_readable(const struct ptkit_ring *ring);
/* Bytes written: they can be read. */
u64 ptkit_ring_head(const struct ptkit_ring *ring);

#endif /* PTKIT_LINUX_RING_H */
