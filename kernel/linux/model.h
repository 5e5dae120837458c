/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A model of the processor, for tests; see model.c. */
#ifndef PTKIT_LINUX_MODEL_H
#define PTKIT_LINUX_MODEL_H

#include <linux/irq_work.h>

#include "common/pt_sequence.h"

struct model_unit {
	u64 ctl;
	u64 status;
	u64 base;
	u64 mask_ptrs;
	u64 cr3_match;
	u64 addr[PT_ADDR_REGISTERS];
	u64 debugctl;
	u64 ds_area;
	u64 global_status;
	u64 *written; /* bytes: the next one follows from it */
	bool armed; /* for an interrupt */
	bool interrupt; /* there is one */
	struct irq_work late;
	unsigned int countdown; /* accesses until it comes; 0: none */
};

/* model_output.c: so many bytes of packets, as the registers say, or as many as there is room. */
void model_write_packets(struct model_unit *unit, unsigned int bytes);
/* The same of records of branches. */
void model_write_records(struct model_unit *unit, unsigned int bytes);

#endif /* PTKIT_LINUX_MODEL_H */
