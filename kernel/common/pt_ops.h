/* SPDX-License-Identifier: MIT */
/*
 * Register accesses of the sequences. A driver executes WRMSR and RDMSR, tests access a trace unit
 * in software, and src/trace_unit/msr records the accesses.
 */
#ifndef PTKIT_COMMON_PT_OPS_H
#define PTKIT_COMMON_PT_OPS_H

#include "pt_types.h"

struct pt_ops {
	/* Nonzero: the access faulted, and changed nothing. */
	int (*write)(void *ctx, uint32_t msr, uint64_t value);
	int (*read)(void *ctx, uint32_t msr, uint64_t *value);
	/* Makes the packets written before visible to other processors; may be null. */
	void (*barrier)(void *ctx);
	void *ctx;
};

/* Functions return 0 or one of these. */
enum pt_error {
	PT_E_FAULT = -1, /* an access faulted */
	PT_E_BUSY = -2, /* another tracer uses the trace unit */
	PT_E_INVALID = -3, /* an argument breaks a rule that its function's comment names */
	PT_E_ROOM = -4, /* the tables are too small */
	PT_E_UNSUPPORTED = -5, /* the processor or the driver lacks it */
	PT_E_FOREIGN = -6, /* another user has loaded its registers */
	PT_E_UNIT = -7, /* the trace unit reported an error */
	PT_E_OWNED = -8, /* the trace unit belongs to another session */
};

#endif /* PTKIT_COMMON_PT_OPS_H */
