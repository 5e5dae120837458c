/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A model of the processor, for tests; see model.c. */
#ifndef PTKIT_TESTS_MODEL_KERNEL_MODEL_H
#define PTKIT_TESTS_MODEL_KERNEL_MODEL_H

#include <linux/irq_work.h>

#include "common/pt_sequence.h"
#include "machine/machine.h"

/* The processor, to which world.c adds its other users. */
extern const struct ptkit_machine model_machine;

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
	u64 *written; /* bytes; the next value depends on it */
	bool interrupt; /* it is pending */
	bool in_vmx; /* VMX operation, in which this processor cannot trace */
	bool cleared_by_vmxon; /* TraceEn, and no write of CTL since */
	unsigned int in_access; /* the driver is at work; NMIs count */
	/* The last interrupt came while the driver was not at work, or with the bit of ToPA. */
	bool noticeable;
	struct irq_work late;
	unsigned int countdown; /* accesses until it comes; 0: none */
};

/* Of the processor that calls it; interrupts are off. */
struct model_unit *model_this_unit(void);
void model_tick(struct model_unit *unit);
void model_deliver(struct model_unit *unit);
/* Whether the interrupt is not masked. */
bool model_is_armed(void);
/* All registers of all processors, as after a reset; no other processor runs. */
void model_reset(void);
/* A bit for each processor that traces. */
unsigned long model_enabled_units(void);

/* model_output.c: write so many bytes of packets; returns how many found no room. */
unsigned int model_write_packets(struct model_unit *unit, unsigned int bytes);
/* Regions of the unit's tables whose end causes an interrupt. */
unsigned int model_interrupt_entries(const struct model_unit *unit);
/* As model_write_packets(), for records of branches. */
void model_write_records(struct model_unit *unit, unsigned int bytes);

/* model_work.c: counts what one interrupt does. */
void model_count_access(void);

#endif /* PTKIT_TESTS_MODEL_KERNEL_MODEL_H */
