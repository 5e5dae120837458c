/* SPDX-License-Identifier: MIT */
/*
 * The stack of last branch records. Intel SDM vol. 3, chapters "Last Branch Records" (architectural
 * ones: the newest is record 0) and "Debug, Branch Profile, TSC, ...", section "LBR Stack" (a ring;
 * MSR_LASTBRANCH_TOS has the newest). How many a processor without the architectural ones has is a
 * matter of its model: others fault.
 */
#ifndef PTKIT_COMMON_PT_LBR_H
#define PTKIT_COMMON_PT_LBR_H

#include "pt_processor.h"
#include "ptkit/rtit_regs.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pt_lbr_branch {
	uint64_t from;
	uint64_t to;
	uint64_t info; /* 0 on processors before Skylake */
};

struct pt_lbr {
	uint32_t count; /* 0: there is no stack */
	bool architectural; /* IA32_LBR_*, otherwise MSR_LASTBRANCH_* */
	bool enabled; /* it records */
	struct pt_lbr_branch branches[PT_LBR_COUNT]; /* the newest first */
};

/* Of the processor that executes this. Writes no register. */
void pt_lbr_read(pt_cpuid_fn *cpuid, const struct pt_ops *ops, struct pt_lbr *lbr);

#ifdef __cplusplus
}
#endif

#endif /* PTKIT_COMMON_PT_LBR_H */
