/* SPDX-License-Identifier: MIT */
/*
 * What the sequences need from where they run: registers of the processor that they run on. A
 * driver executes WRMSR and RDMSR, tests ask a trace unit in software, and src/rtit writes down
 * what it is asked for.
 */
#ifndef PTKIT_COMMON_PT_OPS_H
#define PTKIT_COMMON_PT_OPS_H

#include "pt_types.h"

struct pt_ops {
	/* Nonzero: the access faulted, and changed nothing. */
	int (*write)(void *ctx, uint32_t msr, uint64_t value);
	int (*read)(void *ctx, uint32_t msr, uint64_t *value);
	/* What was traced before is seen by other processors afterwards; may be null. */
	void (*barrier)(void *ctx);
	void *ctx;
};

/* What functions return: 0, or one of these. */
enum pt_error {
	PT_E_FAULT = -1, /* an access faulted */
	PT_E_BUSY = -2, /* somebody else uses the unit */
	PT_E_INVALID = -3, /* an argument breaks a rule that its function's comment names */
	PT_E_ROOM = -4, /* the tables are too small */
};

#endif /* PTKIT_COMMON_PT_OPS_H */
