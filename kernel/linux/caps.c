// SPDX-License-Identifier: GPL-2.0 OR MIT
/* What the processor can do, and whether a configuration keeps to it. */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bits.h>
#include <linux/cpufeature.h>
#include <linux/errno.h>
#include <linux/printk.h>
#include <linux/stddef.h>

#include "ptkit.h"
#include "ptkit/rtit_regs.h"

int ptkit_read_caps(struct ptkit_caps *caps)
{
	u32 words[4];

	ptkit_machine.cpuid(1, 0, words);
	caps->cpuid_1_eax = words[0];
	ptkit_machine.cpuid(7, 0, words);
	caps->cpuid_7_ebx = words[1];
	if (!(caps->cpuid_7_ebx & BIT(PT_CPUID_7_EBX_PT))) {
		pr_err("no Intel Processor Trace here: CPUID 7H EBX is %#010x, bit %u is clear\n",
		       caps->cpuid_7_ebx, PT_CPUID_7_EBX_PT);
		return -ENODEV;
	}
	ptkit_machine.cpuid(0x14, 0, caps->cpuid_14_0);
	if (caps->cpuid_14_0[0])
		ptkit_machine.cpuid(0x14, 1, caps->cpuid_14_1);
	ptkit_machine.cpuid(0x15, 0, caps->cpuid_15);
	caps->physical_bits = boot_cpu_data.x86_phys_bits;
	caps->linear_bits = boot_cpu_data.x86_virt_bits;
	return 0;
}

static bool ebx_has(const struct ptkit_caps *caps, unsigned int bit)
{
	return caps->cpuid_14_0[1] & BIT(bit);
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
	if (ecx_has(caps, PT_CPUID_14_ECX_SINGLE_RANGE))
		features |= PTKIT_FEATURE_SINGLE_RANGE;
	if (ebx_has(caps, PT_CPUID_14_EBX_CR3_FILTER)) {
		features |= PTKIT_FEATURE_PROCESS;
		if (!boot_cpu_has(X86_FEATURE_PTI))
			features |= PTKIT_FEATURE_PROCESS_BOTH;
	}
	return features;
}

#define NO_CPUID 0xff

/* Bit of CTL, and bit of CPUID 14H EBX that tells of it, for a flag each. */
static const struct {
	u64 flag;
	u8 ctl;
	u8 cpuid;
} flag_bits[] = {
	{PTKIT_TRACE_USER, PT_CTL_USER, NO_CPUID},
	{PTKIT_TRACE_KERNEL, PT_CTL_OS, NO_CPUID},
	{PTKIT_TRACE_BRANCHES, PT_CTL_BRANCH_EN, NO_CPUID},
	{PTKIT_TRACE_TSC, PT_CTL_TSC_EN, NO_CPUID},
	{PTKIT_TRACE_MTC, PT_CTL_MTC_EN, PT_CPUID_14_EBX_MTC},
	{PTKIT_TRACE_CYC, PT_CTL_CYC_EN, PT_CPUID_14_EBX_PSB_CYC},
	{PTKIT_TRACE_PTWRITE, PT_CTL_PTW_EN, PT_CPUID_14_EBX_PTWRITE},
	{PTKIT_TRACE_PTWRITE_FUP, PT_CTL_FUP_ON_PTW, PT_CPUID_14_EBX_PTWRITE},
	{PTKIT_TRACE_POWER, PT_CTL_PWR_EVT_EN, PT_CPUID_14_EBX_POWER_EVENT},
	{PTKIT_TRACE_EVENTS, PT_CTL_EVENT_EN, PT_CPUID_14_EBX_EVENT_TRACE},
	{PTKIT_TRACE_NO_RETC, PT_CTL_DIS_RETC, NO_CPUID},
	{PTKIT_TRACE_NO_TNT, PT_CTL_DIS_TNT, PT_CPUID_14_EBX_TNT_DISABLE},
};

#define REFUSE(config, field, reason)                                                              \
	((config)->refused = offsetof(struct ptkit_config, field), (reason))

static int make_flags(const struct ptkit_caps *caps, struct ptkit_config *config,
		      struct pt_state *state)
{
	u64 unknown = config->flags;
	unsigned int i;

	for (i = 0; i < ARRAY_SIZE(flag_bits); i++) {
		if (!(config->flags & flag_bits[i].flag))
			continue;
		unknown &= ~flag_bits[i].flag;
		if (flag_bits[i].cpuid != NO_CPUID && !ebx_has(caps, flag_bits[i].cpuid))
			return REFUSE(config, flags, -EOPNOTSUPP);
		state->ctl |= BIT_ULL(flag_bits[i].ctl);
	}
	if (unknown || !(config->flags & (PTKIT_TRACE_USER | PTKIT_TRACE_KERNEL)))
		return REFUSE(config, flags, -EINVAL);
	if ((config->flags & PTKIT_TRACE_PTWRITE_FUP) && !(config->flags & PTKIT_TRACE_PTWRITE))
		return REFUSE(config, flags, -EINVAL);
	return 0;
}

/* A field of four bits; with `supported`, what is in CPUID's bitmap, otherwise nothing but 0. */
static int make_field(struct pt_state *state, u8 value, u32 shift, u32 supported)
{
	if (value > 15 || (value && !supported))
		return -EINVAL;
	if (supported && !(supported & BIT(value)))
		return -EOPNOTSUPP;
	state->ctl |= (u64)value << shift;
	return 0;
}

static int make_periods(const struct ptkit_caps *caps, struct ptkit_config *config,
			struct pt_state *state)
{
	u32 mtc = caps->cpuid_14_1[0] >> PT_CPUID_14_1_EAX_MTC_SHIFT;
	u32 cyc = (caps->cpuid_14_1[1] >> PT_CPUID_14_1_EBX_CYC_SHIFT) & 0xffff;
	u32 psb = caps->cpuid_14_1[1] >> PT_CPUID_14_1_EBX_PSB_SHIFT;
	int error;

	/* 0 is what CTL has after a reset: it needs to be in the bitmap where it is a period. */
	cyc |= BIT(0);
	psb |= BIT(0);
	error = make_field(state, config->mtc_freq, PT_CTL_MTC_FREQ_SHIFT,
			   config->flags & PTKIT_TRACE_MTC ? mtc : 0);
	if (error)
		return REFUSE(config, mtc_freq, error);
	error = make_field(state, config->cyc_thresh, PT_CTL_CYC_THRESH_SHIFT,
			   config->flags & PTKIT_TRACE_CYC ? cyc : 0);
	if (error)
		return REFUSE(config, cyc_thresh, error);
	error = make_field(state, config->psb_freq, PT_CTL_PSB_FREQ_SHIFT,
			   ebx_has(caps, PT_CPUID_14_EBX_PSB_CYC) ? psb : 0);
	if (error)
		return REFUSE(config, psb_freq, error);
	return 0;
}

/* Writing another address to a register would fault. */
static bool is_canonical(const struct ptkit_caps *caps, u64 address)
{
	unsigned int unused = 64 - caps->linear_bits;

	return (u64)((s64)(address << unused) >> unused) == address;
}

static int check_range(const struct ptkit_caps *caps, const struct ptkit_range *range)
{
	if (range->action != PTKIT_RANGE_FILTER && range->action != PTKIT_RANGE_STOP)
		return -EINVAL;
	if (range->zero || range->first > range->last)
		return -EINVAL;
	if (!is_canonical(caps, range->first) || !is_canonical(caps, range->last))
		return -EINVAL;
	return 0;
}

static bool range_is_empty(const struct ptkit_range *range)
{
	return !range->first && !range->last && !range->action && !range->zero;
}

static int make_ranges(const struct ptkit_caps *caps, struct ptkit_config *config,
		       struct pt_state *state)
{
	u32 most = caps->cpuid_14_1[0] & (BIT(PT_CPUID_14_1_EAX_RANGES_WIDTH) - 1);
	u32 i;

	if (config->range_count > PTKIT_MOST_RANGES)
		return REFUSE(config, range_count, -EINVAL);
	if (config->range_count &&
	    (!ebx_has(caps, PT_CPUID_14_EBX_IP_FILTER) || config->range_count > most))
		return REFUSE(config, range_count, -EOPNOTSUPP);
	for (i = 0; i < PTKIT_MOST_RANGES; i++) {
		const struct ptkit_range *range = &config->ranges[i];
		u32 shift = PT_CTL_ADDR0_CFG_SHIFT + PT_CTL_ADDR_CFG_WIDTH * i;

		if (i >= config->range_count && range_is_empty(range))
			continue;
		if (i >= config->range_count || check_range(caps, range)) {
			config->refused =
				offsetof(struct ptkit_config, ranges) + i * sizeof(*range);
			return -EINVAL;
		}
		state->ctl |= (u64)range->action << shift;
		state->addr[2 * i] = range->first;
		state->addr[2 * i + 1] = range->last;
	}
	return 0;
}

static int check_target(const struct ptkit_caps *caps, struct ptkit_config *config)
{
	u64 features = ptkit_features(caps);
	bool both = (config->flags & PTKIT_TRACE_USER) && (config->flags & PTKIT_TRACE_KERNEL);

	if (config->target == PTKIT_TARGET_TASK)
		return REFUSE(config, target, -EOPNOTSUPP);
	if (config->target > PTKIT_TARGET_TASK)
		return REFUSE(config, target, -EINVAL);
	if (config->target != PTKIT_TARGET_CPU && config->cpu)
		return REFUSE(config, cpu, -EINVAL);
	if (config->task)
		return REFUSE(config, task, -EINVAL);
	if (config->process < 0)
		return REFUSE(config, process, -EINVAL);
	if (config->process && !(features & PTKIT_FEATURE_PROCESS))
		return REFUSE(config, process, -EOPNOTSUPP);
	if (config->process && both && !(features & PTKIT_FEATURE_PROCESS_BOTH))
		return REFUSE(config, process, -EOPNOTSUPP);
	return 0;
}

static int check_output(const struct ptkit_caps *caps, struct ptkit_config *config)
{
	bool single = config->output == PTKIT_OUTPUT_SINGLE_RANGE;
	u64 needed = single ? PTKIT_FEATURE_SINGLE_RANGE : PTKIT_FEATURE_TOPA;

	if (config->output > PTKIT_OUTPUT_SINGLE_RANGE)
		return REFUSE(config, output, -EINVAL);
	if (!(ptkit_features(caps) & needed))
		return REFUSE(config, output, -EOPNOTSUPP);
	if (config->mode > PTKIT_MODE_RING || (single && config->mode != PTKIT_MODE_RING))
		return REFUSE(config, mode, -EINVAL);
	if (!config->buffer_bytes || config->buffer_bytes % PAGE_SIZE ||
	    (single && (config->buffer_bytes & (config->buffer_bytes - 1))))
		return REFUSE(config, buffer_bytes, -EINVAL);
	if (config->sideband_bytes)
		return REFUSE(config, sideband_bytes, -EOPNOTSUPP);
	if (config->wake_up_bytes)
		return REFUSE(config, wake_up_bytes, -EOPNOTSUPP);
	return 0;
}

int ptkit_make_state(const struct ptkit_caps *caps, struct ptkit_config *config,
		     struct pt_state *state)
{
	int error;

	error = check_target(caps, config);
	if (!error)
		error = check_output(caps, config);
	if (!error)
		error = make_flags(caps, config, state);
	if (!error)
		error = make_periods(caps, config, state);
	if (!error)
		error = make_ranges(caps, config, state);
	if (error)
		return error;
	if (config->output == PTKIT_OUTPUT_TOPA)
		state->ctl |= BIT_ULL(PT_CTL_TOPA);
	if (config->process)
		state->ctl |= BIT_ULL(PT_CTL_CR3_FILTER);
	return 0;
}
