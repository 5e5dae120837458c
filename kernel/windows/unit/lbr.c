// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * Intel SDM vol. 3, chapters "Last Branch Records" (architectural ones, the newest is record 0) and
 * "Debug, Branch Profile, TSC, ...", section "LBR Stack" (a ring; MSR_LASTBRANCH_TOS has the
 * newest). How many a processor without the architectural ones has is a matter of its model: others
 * fault.
 */
#include "machine/machine.h"
#include "ptkit/rtit_regs.h"
#include "unit/lbr.h"

#define CPUID_7_EDX_ARCH_LBR 19
#define MOST_BRANCHES PT_LBR_COUNT

static bool read(uint32_t msr, uint64_t *value)
{
	return !ptkit_machine.ops.read(ptkit_machine.ops.ctx, msr, value);
}

static bool is_architectural(void)
{
	uint32_t words[4];

	ptkit_machine.cpuid(7, 0, words);
	return words[3] >> CPUID_7_EDX_ARCH_LBR & 1;
}

static bool read_architectural(uint32_t index, struct ptkit_windows_branch *branch)
{
	return read(PT_MSR_ARCH_LBR_0_FROM_IP + index, &branch->from) &&
	       read(PT_MSR_ARCH_LBR_0_TO_IP + index, &branch->to) &&
	       read(PT_MSR_ARCH_LBR_0_INFO + index, &branch->info);
}

/* Processors before Skylake have no LBR_INFO. */
static bool read_model_specific(uint32_t index, struct ptkit_windows_branch *branch)
{
	if (!read(PT_MSR_LASTBRANCH_0_FROM_IP + index, &branch->from) ||
	    !read(PT_MSR_LASTBRANCH_0_TO_IP + index, &branch->to))
		return false;
	if (!read(PT_MSR_LBR_INFO_0 + index, &branch->info))
		branch->info = 0;
	return true;
}

static void read_new_stack(struct ptkit_windows_lbr *lbr)
{
	uint64_t control;
	uint64_t depth;

	if (!read(PT_MSR_ARCH_LBR_CTL, &control) || !read(PT_MSR_ARCH_LBR_DEPTH, &depth))
		return;
	lbr->enabled = control & PT_BIT(PT_ARCH_LBR_CTL_LBR_EN);
	while (lbr->count < depth && lbr->count < MOST_BRANCHES &&
	       read_architectural(lbr->count, &lbr->branches[lbr->count]))
		lbr->count++;
}

static uint32_t count_model_specific(void)
{
	uint32_t count = 0;
	uint64_t value;

	while (count < MOST_BRANCHES && read(PT_MSR_LASTBRANCH_0_FROM_IP + count, &value))
		count++;
	return count;
}

static void read_old_stack(struct ptkit_windows_lbr *lbr)
{
	uint32_t count = count_model_specific();
	uint64_t control;
	uint64_t top;

	if (!count || !read(PT_MSR_DEBUGCTL, &control) || !read(PT_MSR_LASTBRANCH_TOS, &top))
		return;
	lbr->enabled = control & PT_BIT(PT_DEBUGCTL_LBR);
	for (; lbr->count < count; lbr->count++) {
		uint32_t index = ((uint32_t)top + count - lbr->count) % count;

		if (!read_model_specific(index, &lbr->branches[lbr->count]))
			return;
	}
}

static void read_here(void *context)
{
	struct ptkit_windows_lbr *lbr = context;

	lbr->architectural = is_architectural();
	if (lbr->architectural)
		read_new_stack(lbr);
	else
		read_old_stack(lbr);
}

uint32_t ptkit_lbr_read(struct ptkit_windows_lbr *lbr)
{
	if (lbr->cpu >= ptkit_machine.cpu_count())
		return PTKIT_REASON_FIELD;
	lbr->count = 0;
	lbr->enabled = 0;
	ptkit_machine.call(lbr->cpu, read_here, lbr);
	return lbr->count ? PTKIT_REASON_NONE : PTKIT_REASON_UNSUPPORTED;
}
