// SPDX-License-Identifier: GPL-2.0 OR MIT
#include <linux/bits.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/stddef.h>
#include <linux/string.h>

#include "common/pt_check.h"
#include "follow/follow.h"
#include "ptkit/rtit_regs.h"
#include "session/config.h"
#include "sideband/sideband.h"
#include "unit/reserve.h"
#include "unit/tasks.h"

#define REFUSE(config, field, reason)                                                              \
	((config)->refused = offsetof(struct ptkit_config, field), (reason))

static bool large_single_range;
module_param(large_single_range, bool, 0444);
MODULE_PARM_DESC(large_single_range, "single ranges above 4 KiB on all processors");

/*
 * Errata TGL052, ADL037 and RPL017: the processor "cannot always support" more than 4 KiB. Linux takes
 * no more on any processor, as later ones may have the erratum, too. These models are older.
 */
u64 ptkit_most_single_bytes(const struct ptkit_caps *caps)
{
	static const u8 models[] = {
		0x3d, 0x47, 0x4f, 0x56, /* Broadwell */
		0x4e, 0x5e, 0x55, 0x8e, 0x9e, 0xa5, 0xa6, /* Skylake to Comet Lake */
		0x66, 0x6a, 0x6c, 0x7d, 0x7e, /* Cannon Lake, Ice Lake */
		0x5c, 0x5f, 0x7a, /* Goldmont, Goldmont Plus */
	};
	u32 signature = caps->cpuid_1_eax;
	u32 model = ((signature >> 12) & 0xf0) | ((signature >> 4) & 0xf);
	bool family_6 = ((signature >> 8) & 0xf) == 6;

	if (large_single_range || (family_6 && memchr(models, model, sizeof(models))))
		return PTKIT_MOST_BYTES;
	return PAGE_SIZE;
}

static bool ecx_has(const struct ptkit_caps *caps, unsigned int bit)
{
	return caps->cpuid_14_0[2] & BIT(bit);
}

u64 ptkit_features(const struct ptkit_caps *caps)
{
	u64 features = 0;

	if (ecx_has(caps, PT_CPUID_14_ECX_TOPA))
		features |= PTKIT_FEATURE_TOPA;
	if (ecx_has(caps, PT_CPUID_14_ECX_TOPA) && ecx_has(caps, PT_CPUID_14_ECX_TOPA_MULTIPLE) &&
	    caps->interrupts)
		features |= PTKIT_FEATURE_WAKE_UP;
	if (ecx_has(caps, PT_CPUID_14_ECX_SINGLE_RANGE))
		features |= PTKIT_FEATURE_SINGLE_RANGE;
	if (ptkit_tasks_available())
		features |= PTKIT_FEATURE_PROCESS | PTKIT_FEATURE_PROCESS_BOTH |
			    PTKIT_FEATURE_TASK | PTKIT_FEATURE_CHILDREN;
	if (caps->bts && ptkit_tasks_available())
		features |= PTKIT_FEATURE_BTS;
	if (caps->in_vmx)
		features |= PTKIT_FEATURE_VMX;
	if (ptkit_reserve_needed())
		features |= PTKIT_FEATURE_RESERVES;
	if (ptkit_sideband_available())
		features |= PTKIT_FEATURE_SIDEBAND;
	return features;
}

/* The bit of CTL for each flag. */
static const struct {
	u64 flag;
	u8 ctl;
} flag_bits[] = {
	{ PTKIT_TRACE_USER, PT_CTL_USER },
	{ PTKIT_TRACE_KERNEL, PT_CTL_OS },
	{ PTKIT_TRACE_BRANCHES, PT_CTL_BRANCH_EN },
	{ PTKIT_TRACE_TSC, PT_CTL_TSC_EN },
	{ PTKIT_TRACE_MTC, PT_CTL_MTC_EN },
	{ PTKIT_TRACE_CYC, PT_CTL_CYC_EN },
	{ PTKIT_TRACE_PTWRITE, PT_CTL_PTW_EN },
	{ PTKIT_TRACE_PTWRITE_FUP, PT_CTL_FUP_ON_PTW },
	{ PTKIT_TRACE_POWER, PT_CTL_PWR_EVT_EN },
	{ PTKIT_TRACE_EVENTS, PT_CTL_EVENT_EN },
	{ PTKIT_TRACE_NO_RETC, PT_CTL_DIS_RETC },
	{ PTKIT_TRACE_NO_TNT, PT_CTL_DIS_TNT },
};

static int make_flags(struct ptkit_config *config, struct pt_state *state)
{
	u64 unknown = config->flags & ~PTKIT_TRACE_CHILDREN; /* not a bit of CTL */
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(flag_bits); i++) {
		if (!(config->flags & flag_bits[i].flag))
			continue;
		unknown &= ~flag_bits[i].flag;
		state->ctl |= BIT_ULL(flag_bits[i].ctl);
	}
	return unknown ? REFUSE(config, flags, -EINVAL) : 0;
}

static int make_periods(struct ptkit_config *config, struct pt_state *state)
{
	if (config->mtc_freq > 15)
		return REFUSE(config, mtc_freq, -EINVAL);
	if (config->cyc_thresh > 15)
		return REFUSE(config, cyc_thresh, -EINVAL);
	if (config->psb_freq > 15)
		return REFUSE(config, psb_freq, -EINVAL);
	state->ctl |= (u64)config->mtc_freq << PT_CTL_MTC_FREQ_SHIFT;
	state->ctl |= (u64)config->cyc_thresh << PT_CTL_CYC_THRESH_SHIFT;
	state->ctl |= (u64)config->psb_freq << PT_CTL_PSB_FREQ_SHIFT;
	return 0;
}

static bool range_is_empty(const struct ptkit_range *range)
{
	return !range->first && !range->last && !range->action;
}

static int refuse_range(struct ptkit_config *config, u32 range)
{
	config->refused = offsetof(struct ptkit_config, ranges) + range * sizeof(config->ranges[0]);
	return -EINVAL;
}

static int make_ranges(struct ptkit_config *config, struct pt_state *state)
{
	u32 i;

	if (config->range_count > PTKIT_MOST_RANGES)
		return REFUSE(config, range_count, -EINVAL);
	for (i = 0; i < PTKIT_MOST_RANGES; i++) {
		const struct ptkit_range *range = &config->ranges[i];
		u32 shift = PT_CTL_ADDR0_CFG_SHIFT + PT_CTL_ADDR_CFG_WIDTH * i;

		if (range->zero || (i >= config->range_count && !range_is_empty(range)))
			return refuse_range(config, i);
		if (i >= config->range_count)
			continue;
		if (range->action != PTKIT_RANGE_FILTER && range->action != PTKIT_RANGE_STOP)
			return refuse_range(config, i);
		state->ctl |= (u64)range->action << shift;
		state->addr[2 * i] = range->first;
		state->addr[2 * i + 1] = range->last;
	}
	return 0;
}

#define FIELD(name, why) { offsetof(struct ptkit_config, name), why }

/*
 * The field that a broken rule of the registers refuses, and the error. Output is checked
 * elsewhere.
 */
static const struct {
	u32 field;
	int error;
} rule_fields[PT_RULE_COUNT] = {
	[PT_RULE_CYC_EN] = FIELD(flags, -EOPNOTSUPP),
	[PT_RULE_PWR_EVT_EN] = FIELD(flags, -EOPNOTSUPP),
	[PT_RULE_FUP_ON_PTW] = FIELD(flags, -EOPNOTSUPP),
	[PT_RULE_MTC_EN] = FIELD(flags, -EOPNOTSUPP),
	[PT_RULE_PTW_EN] = FIELD(flags, -EOPNOTSUPP),
	[PT_RULE_BRANCH_EN] = FIELD(flags, -EOPNOTSUPP),
	[PT_RULE_EVENT_EN] = FIELD(flags, -EOPNOTSUPP),
	[PT_RULE_DIS_TNT] = FIELD(flags, -EOPNOTSUPP),
	[PT_RULE_NO_LEVEL] = FIELD(flags, -EINVAL),
	[PT_RULE_FUP_ALONE] = FIELD(flags, -EINVAL),
	[PT_RULE_MTC_FREQ] = FIELD(mtc_freq, -EOPNOTSUPP),
	[PT_RULE_MTC_FREQ_VALUE] = FIELD(mtc_freq, -EOPNOTSUPP),
	[PT_RULE_MTC_FREQ_ALONE] = FIELD(mtc_freq, -EINVAL),
	[PT_RULE_CYC_THRESH] = FIELD(cyc_thresh, -EOPNOTSUPP),
	[PT_RULE_CYC_THRESH_VALUE] = FIELD(cyc_thresh, -EOPNOTSUPP),
	[PT_RULE_CYC_THRESH_ALONE] = FIELD(cyc_thresh, -EINVAL),
	[PT_RULE_PSB_FREQ] = FIELD(psb_freq, -EOPNOTSUPP),
	[PT_RULE_PSB_FREQ_VALUE] = FIELD(psb_freq, -EOPNOTSUPP),
	[PT_RULE_CR3_FILTER] = FIELD(process, -EOPNOTSUPP),
	[PT_RULE_TOPA] = FIELD(output, -EOPNOTSUPP),
	[PT_RULE_SINGLE_RANGE] = FIELD(output, -EOPNOTSUPP),
	[PT_RULE_ADDR_CFG_RANGE] = FIELD(range_count, -EOPNOTSUPP),
	[PT_RULE_ADDR_A] = FIELD(ranges, -EINVAL),
	[PT_RULE_ADDR_B] = FIELD(ranges, -EINVAL),
	[PT_RULE_ADDR_ORDER] = FIELD(ranges, -EINVAL),
};

struct first_rule {
	struct ptkit_config *config;
	int error;
};

static void note_rule(void *context, enum pt_rule rule, uint32_t range)
{
	struct first_rule *first = context;

	if (first->error || !rule_fields[rule].error)
		return;
	first->error = rule_fields[rule].error;
	first->config->refused = rule_fields[rule].field;
	if (rule_fields[rule].field == offsetof(struct ptkit_config, ranges))
		refuse_range(first->config, range);
}

/* Erratum BDM106: Broadwell faults without BranchEn. */
static bool needs_branch_en(u32 signature)
{
	static const u32 broadwells[] = { 0x306d0, 0x40670, 0x406f0, 0x50660 };
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(broadwells); i++) {
		if ((signature & ~15U) == broadwells[i])
			return true;
	}
	return false;
}

static int check_rules(const struct ptkit_caps *caps, struct ptkit_config *config,
		       const struct pt_state *state)
{
	struct first_rule first = { .config = config };
	struct pt_caps known = {
		.leaf_14_ebx = caps->cpuid_14_0[1],
		.leaf_14_ecx = caps->cpuid_14_0[2],
		.leaf_14_1_eax = caps->cpuid_14_1[0],
		.leaf_14_1_ebx = caps->cpuid_14_1[1],
		.physical_bits = caps->physical_bits,
		.linear_bits = caps->linear_bits,
		.needs_branch_en = needs_branch_en(caps->cpuid_1_eax),
	};

	pt_check(&known, state, note_rule, &first);
	return first.error;
}

static int check_process(struct ptkit_config *config)
{
	if (config->process < 0 || (config->process && config->target == PTKIT_TARGET_TASK))
		return REFUSE(config, process, -EINVAL);
	if (config->process && !ptkit_tasks_available())
		return REFUSE(config, process, -EOPNOTSUPP);
	if (!config->process && (config->flags & PTKIT_TRACE_CHILDREN))
		return REFUSE(config, flags, -EINVAL);
	return 0;
}

static int check_target(struct ptkit_config *config)
{
	bool task = config->target == PTKIT_TARGET_TASK;

	if (config->target == PTKIT_TARGET_CPU &&
	    (config->cpu >= nr_cpu_ids || !cpu_possible(config->cpu)))
		return REFUSE(config, cpu, -EINVAL);
	if (config->buffer_bytes > PTKIT_MOST_BYTES)
		return REFUSE(config, buffer_bytes, -EINVAL);
	if (config->target > PTKIT_TARGET_TASK)
		return REFUSE(config, target, -EINVAL);
	if (task && !ptkit_tasks_available())
		return REFUSE(config, target, -EOPNOTSUPP);
	if (config->target != PTKIT_TARGET_CPU && config->cpu)
		return REFUSE(config, cpu, -EINVAL);
	if (task ? config->task <= 0 : config->task)
		return REFUSE(config, task, -EINVAL);
	return check_process(config);
}

static int check_wake_up(const struct ptkit_caps *caps, struct ptkit_config *config)
{
	u64 bytes = config->wake_up_bytes;
	bool branches = config->output == PTKIT_OUTPUT_BTS;

	if (!bytes)
		return 0;
	if (!branches && !(ptkit_features(caps) & PTKIT_FEATURE_WAKE_UP))
		return REFUSE(config, wake_up_bytes, -EOPNOTSUPP);
	if (bytes < PAGE_SIZE || (bytes & (bytes - 1)) || bytes > config->buffer_bytes / 4 ||
	    config->mode != PTKIT_MODE_FULL || (!branches && config->output != PTKIT_OUTPUT_TOPA))
		return REFUSE(config, wake_up_bytes, -EINVAL);
	return 0;
}

static int check_sideband(const struct ptkit_caps *caps, struct ptkit_config *config)
{
	u64 bytes = config->sideband_bytes;

	if (!bytes)
		return 0;
	if (!(ptkit_features(caps) & PTKIT_FEATURE_SIDEBAND))
		return REFUSE(config, sideband_bytes, -EOPNOTSUPP);
	if (bytes < PAGE_SIZE || (bytes & (bytes - 1)) || bytes > PTKIT_MOST_SIDEBAND_BYTES)
		return REFUSE(config, sideband_bytes, -EINVAL);
	return 0;
}

static int check_output(const struct ptkit_caps *caps, struct ptkit_config *config)
{
	bool single = config->output == PTKIT_OUTPUT_SINGLE_RANGE;

	if (config->output > PTKIT_OUTPUT_BTS)
		return REFUSE(config, output, -EINVAL);
	if (config->mode > PTKIT_MODE_RING || (single && config->mode != PTKIT_MODE_RING))
		return REFUSE(config, mode, -EINVAL);
	if (single && config->buffer_bytes > ptkit_most_single_bytes(caps))
		return REFUSE(config, buffer_bytes, -EOPNOTSUPP);
	if (!config->buffer_bytes || config->buffer_bytes % PAGE_SIZE ||
	    (single && (config->buffer_bytes & (config->buffer_bytes - 1))))
		return REFUSE(config, buffer_bytes, -EINVAL);
	return 0;
}

/* Branch Trace Store takes no option of packets. */
static int check_bts(const struct ptkit_caps *caps, struct ptkit_config *config)
{
	const u64 levels = PTKIT_TRACE_USER | PTKIT_TRACE_KERNEL;
	u64 wanted = config->flags & levels;

	if (!caps->bts || !ptkit_tasks_available())
		return REFUSE(config, output, -EOPNOTSUPP);
	if (config->target == PTKIT_TARGET_TASK)
		return REFUSE(config, target, -EINVAL);
	if (!wanted || (config->flags & ~(levels | PTKIT_TRACE_BRANCHES | PTKIT_TRACE_CHILDREN)))
		return REFUSE(config, flags, -EINVAL);
	if (wanted != levels && !caps->bts_levels)
		return REFUSE(config, flags, -EOPNOTSUPP);
	if (config->mtc_freq)
		return REFUSE(config, mtc_freq, -EINVAL);
	if (config->cyc_thresh)
		return REFUSE(config, cyc_thresh, -EINVAL);
	if (config->psb_freq)
		return REFUSE(config, psb_freq, -EINVAL);
	if (config->range_count)
		return REFUSE(config, range_count, -EINVAL);
	return 0;
}

int ptkit_make_state(const struct ptkit_caps *caps, struct ptkit_config *config,
		     struct pt_state *state)
{
	int error;

	error = check_target(config);
	if (!error)
		error = check_output(caps, config);
	if (!error)
		error = check_wake_up(caps, config);
	if (!error)
		error = check_sideband(caps, config);
	if (!error && config->output == PTKIT_OUTPUT_BTS)
		error = check_bts(caps, config);
	else if (!error)
		error = make_flags(config, state);
	if (!error)
		error = make_periods(config, state);
	if (!error)
		error = make_ranges(config, state);
	if (error || config->output == PTKIT_OUTPUT_BTS)
		return error;
	if (config->output == PTKIT_OUTPUT_TOPA)
		state->ctl |= BIT_ULL(PT_CTL_TOPA);
	if (config->process && !ptkit_follow_switches(caps, config))
		state->ctl |= BIT_ULL(PT_CTL_CR3_FILTER);
	return check_rules(caps, config, state);
}
