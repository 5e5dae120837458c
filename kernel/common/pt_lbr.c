// SPDX-License-Identifier: MIT
#include "pt_lbr.h"

#define CPUID_7_EDX_ARCH_LBR 19

static bool read_msr(const struct pt_ops *ops, uint32_t msr, uint64_t *value)
{
	return !ops->read(ops->ctx, msr, value);
}

static bool read_architectural(const struct pt_ops *ops, uint32_t index,
			       struct pt_lbr_branch *branch)
{
	return read_msr(ops, PT_MSR_ARCH_LBR_0_FROM_IP + index, &branch->from) &&
	       read_msr(ops, PT_MSR_ARCH_LBR_0_TO_IP + index, &branch->to) &&
	       read_msr(ops, PT_MSR_ARCH_LBR_0_INFO + index, &branch->info);
}

static bool read_model_specific(const struct pt_ops *ops, uint32_t index,
				struct pt_lbr_branch *branch)
{
	if (!read_msr(ops, PT_MSR_LASTBRANCH_0_FROM_IP + index, &branch->from) ||
	    !read_msr(ops, PT_MSR_LASTBRANCH_0_TO_IP + index, &branch->to))
		return false;
	if (!read_msr(ops, PT_MSR_LBR_INFO_0 + index, &branch->info))
		branch->info = 0;
	return true;
}

static void read_new_stack(const struct pt_ops *ops, struct pt_lbr *lbr)
{
	uint64_t control;
	uint64_t depth;

	if (!read_msr(ops, PT_MSR_ARCH_LBR_CTL, &control) ||
	    !read_msr(ops, PT_MSR_ARCH_LBR_DEPTH, &depth))
		return;
	lbr->enabled = control & PT_BIT(PT_ARCH_LBR_CTL_LBR_EN);
	while (lbr->count < depth && lbr->count < PT_LBR_COUNT &&
	       read_architectural(ops, lbr->count, &lbr->branches[lbr->count]))
		lbr->count++;
}

static uint32_t count_model_specific(const struct pt_ops *ops)
{
	uint32_t count = 0;
	uint64_t value;

	while (count < PT_LBR_COUNT && read_msr(ops, PT_MSR_LASTBRANCH_0_FROM_IP + count, &value))
		count++;
	return count;
}

static void read_old_stack(const struct pt_ops *ops, struct pt_lbr *lbr)
{
	uint32_t count = count_model_specific(ops);
	uint64_t control;
	uint64_t top;

	if (!count || !read_msr(ops, PT_MSR_DEBUGCTL, &control) ||
	    !read_msr(ops, PT_MSR_LASTBRANCH_TOS, &top))
		return;
	lbr->enabled = control & PT_BIT(PT_DEBUGCTL_LBR);
	for (; lbr->count < count; lbr->count++) {
		uint32_t index = ((uint32_t)(top % count) + count - lbr->count) % count;

		if (!read_model_specific(ops, index, &lbr->branches[lbr->count]))
			return;
	}
}

void pt_lbr_read(pt_cpuid_fn *cpuid, const struct pt_ops *ops, struct pt_lbr *lbr)
{
	uint32_t words[4];

	cpuid(7, 0, words);
	lbr->count = 0;
	lbr->enabled = false;
	lbr->architectural = (words[3] >> CPUID_7_EDX_ARCH_LBR) & 1;
	if (lbr->architectural)
		read_new_stack(ops, lbr);
	else
		read_old_stack(ops, lbr);
}
