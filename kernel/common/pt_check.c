// SPDX-License-Identifier: MIT
#include "pt_check.h"

#include "ptkit/rtit_regs.h"

#ifndef ARRAY_SIZE /* the kernel has it */
#define ARRAY_SIZE(array) (sizeof(array) / sizeof((array)[0]))
#endif

#define MASK(width) (PT_BIT(width) - 1)
#define FIELD(shift, width) (MASK(width) << (shift))

#define CTL_FIELDS                                                                                 \
	(FIELD(PT_CTL_TRACE_EN, 18) | FIELD(PT_CTL_CYC_THRESH_SHIFT, PT_CTL_CYC_THRESH_WIDTH) |    \
	 FIELD(PT_CTL_PSB_FREQ_SHIFT, PT_CTL_PSB_FREQ_WIDTH) | PT_BIT(PT_CTL_EVENT_EN) |           \
	 FIELD(PT_CTL_ADDR0_CFG_SHIFT, PT_CTL_ADDR_CFG_WIDTH * PT_MSR_RTIT_ADDR_COUNT) |           \
	 PT_BIT(PT_CTL_DIS_TNT) | PT_BIT(PT_CTL_INJECT_PSB_PMI_ON_ENABLE))

#define STATUS_FIELDS                                                                              \
	(FIELD(PT_STATUS_FILTER_EN, 3) | FIELD(PT_STATUS_ERROR, 4) |                               \
	 FIELD(PT_STATUS_PACKET_BYTE_COUNT_SHIFT, PT_STATUS_PACKET_BYTE_COUNT_WIDTH))

struct check {
	const struct pt_caps *caps;
	const struct pt_state *state;
	void (*report)(void *ctx, enum pt_rule rule, uint32_t range);
	void *ctx;
	uint32_t failures;
};

/* A field that is there only if CPUID says so. */
struct need {
	uint64_t bits;
	bool in_ecx;
	uint8_t cpuid_bit;
	enum pt_rule rule;
};

static const struct need ctl_needs[] = {
	{PT_BIT(PT_CTL_CYC_EN), false, PT_CPUID_14_EBX_PSB_CYC, PT_RULE_CYC_EN},
	{PT_BIT(PT_CTL_PWR_EVT_EN), false, PT_CPUID_14_EBX_POWER_EVENT, PT_RULE_PWR_EVT_EN},
	{PT_BIT(PT_CTL_FUP_ON_PTW), false, PT_CPUID_14_EBX_PTWRITE, PT_RULE_FUP_ON_PTW},
	{PT_BIT(PT_CTL_FABRIC_EN), true, PT_CPUID_14_ECX_TRACE_TRANSPORT, PT_RULE_FABRIC_EN},
	{PT_BIT(PT_CTL_CR3_FILTER), false, PT_CPUID_14_EBX_CR3_FILTER, PT_RULE_CR3_FILTER},
	{PT_BIT(PT_CTL_TOPA), true, PT_CPUID_14_ECX_TOPA, PT_RULE_TOPA},
	{PT_BIT(PT_CTL_MTC_EN), false, PT_CPUID_14_EBX_MTC, PT_RULE_MTC_EN},
	{PT_BIT(PT_CTL_PTW_EN), false, PT_CPUID_14_EBX_PTWRITE, PT_RULE_PTW_EN},
	{FIELD(PT_CTL_MTC_FREQ_SHIFT, PT_CTL_MTC_FREQ_WIDTH), false, PT_CPUID_14_EBX_MTC,
	 PT_RULE_MTC_FREQ},
	{FIELD(PT_CTL_CYC_THRESH_SHIFT, PT_CTL_CYC_THRESH_WIDTH), false, PT_CPUID_14_EBX_PSB_CYC,
	 PT_RULE_CYC_THRESH},
	{FIELD(PT_CTL_PSB_FREQ_SHIFT, PT_CTL_PSB_FREQ_WIDTH), false, PT_CPUID_14_EBX_PSB_CYC,
	 PT_RULE_PSB_FREQ},
	{PT_BIT(PT_CTL_EVENT_EN), false, PT_CPUID_14_EBX_EVENT_TRACE, PT_RULE_EVENT_EN},
	{PT_BIT(PT_CTL_DIS_TNT), false, PT_CPUID_14_EBX_TNT_DISABLE, PT_RULE_DIS_TNT},
	{PT_BIT(PT_CTL_INJECT_PSB_PMI_ON_ENABLE), false, PT_CPUID_14_EBX_PSB_PMI_PRESERVATION,
	 PT_RULE_INJECT},
};

static const struct need status_needs[] = {
	{PT_BIT(PT_STATUS_PEND_PSB), false, PT_CPUID_14_EBX_PSB_PMI_PRESERVATION, PT_RULE_PEND_PSB},
	{PT_BIT(PT_STATUS_PEND_TOPA_PMI), false, PT_CPUID_14_EBX_PSB_PMI_PRESERVATION,
	 PT_RULE_PEND_TOPA_PMI},
	{FIELD(PT_STATUS_PACKET_BYTE_COUNT_SHIFT, PT_STATUS_PACKET_BYTE_COUNT_WIDTH), false,
	 PT_CPUID_14_EBX_PSB_CYC, PT_RULE_PACKET_BYTE_CNT},
};

static const struct pt_rule_text rule_texts[] = {
#define PT_RULE(name, msr, field, effect, words, section)                                          \
	{msr, PT_EFFECT_##effect, field, words, section},
#include "pt_rules.def"
#undef PT_RULE
};

const struct pt_rule_text *pt_describe_rule(enum pt_rule rule)
{
	return &rule_texts[rule];
}

static bool has_ebx(const struct pt_caps *caps, uint32_t position)
{
	return caps->leaf_14_ebx & PT_BIT(position);
}

static bool has_ecx(const struct pt_caps *caps, uint32_t position)
{
	return caps->leaf_14_ecx & PT_BIT(position);
}

uint32_t pt_ranges(const struct pt_caps *caps)
{
	uint32_t count = caps->leaf_14_1_eax & (uint32_t)MASK(PT_CPUID_14_1_EAX_RANGES_WIDTH);

	if (!has_ebx(caps, PT_CPUID_14_EBX_IP_FILTER))
		return 0;
	return count < PT_MSR_RTIT_ADDR_COUNT ? count : PT_MSR_RTIT_ADDR_COUNT;
}

static void break_rule(struct check *check, bool broken, enum pt_rule rule, uint32_t range)
{
	if (!broken)
		return;
	if (rule_texts[rule].effect == PT_EFFECT_FAULT ||
	    rule_texts[rule].effect == PT_EFFECT_ERROR)
		check->failures++;
	if (check->report)
		check->report(check->ctx, rule, range);
}

static void check_needs(struct check *check, uint64_t value, const struct need *needs, size_t count)
{
	size_t i;

	for (i = 0; i < count; i++) {
		const struct need *need = &needs[i];
		bool there = need->in_ecx ? has_ecx(check->caps, need->cpuid_bit)
					  : has_ebx(check->caps, need->cpuid_bit);

		break_rule(check, !there && (value & need->bits), need->rule, 0);
	}
}

static uint32_t ctl_value(const struct check *check, uint32_t shift, uint32_t width)
{
	return (uint32_t)((check->state->ctl >> shift) & MASK(width));
}

static bool ctl_bit(const struct check *check, uint32_t position)
{
	return ctl_value(check, position, 1);
}

/*
 * 0 is the value of the fields after a reset. With MTCEn, MTCFreq 0 is a period like any other.
 */
static void check_values(struct check *check)
{
	const struct pt_caps *caps = check->caps;
	uint32_t mtc = ctl_value(check, PT_CTL_MTC_FREQ_SHIFT, PT_CTL_MTC_FREQ_WIDTH);
	uint32_t cyc = ctl_value(check, PT_CTL_CYC_THRESH_SHIFT, PT_CTL_CYC_THRESH_WIDTH);
	uint32_t psb = ctl_value(check, PT_CTL_PSB_FREQ_SHIFT, PT_CTL_PSB_FREQ_WIDTH);
	bool mtc_en = ctl_bit(check, PT_CTL_MTC_EN);
	bool has_mtc = has_ebx(caps, PT_CPUID_14_EBX_MTC);
	bool has_cyc = has_ebx(caps, PT_CPUID_14_EBX_PSB_CYC);

	break_rule(check,
		   has_mtc && (mtc || mtc_en) &&
			   !(caps->leaf_14_1_eax & PT_BIT(PT_CPUID_14_1_EAX_MTC_SHIFT + mtc)),
		   PT_RULE_MTC_FREQ_VALUE, 0);
	break_rule(check,
		   has_cyc && cyc &&
			   !(caps->leaf_14_1_ebx & PT_BIT(PT_CPUID_14_1_EBX_CYC_SHIFT + cyc)),
		   PT_RULE_CYC_THRESH_VALUE, 0);
	break_rule(check,
		   has_cyc && psb &&
			   !(caps->leaf_14_1_ebx & PT_BIT(PT_CPUID_14_1_EBX_PSB_SHIFT + psb)),
		   PT_RULE_PSB_FREQ_VALUE, 0);
	break_rule(check, mtc && !mtc_en, PT_RULE_MTC_FREQ_ALONE, 0);
	break_rule(check, cyc && !ctl_bit(check, PT_CTL_CYC_EN), PT_RULE_CYC_THRESH_ALONE, 0);
}

static void check_ctl(struct check *check)
{
	uint64_t ctl = check->state->ctl;
	bool fabric = ctl_bit(check, PT_CTL_FABRIC_EN);
	bool topa = ctl_bit(check, PT_CTL_TOPA);

	break_rule(check, ctl & ~CTL_FIELDS, PT_RULE_CTL_RESERVED, 0);
	check_needs(check, ctl, ctl_needs, ARRAY_SIZE(ctl_needs));
	check_values(check);
	break_rule(check, !fabric && !topa && !has_ecx(check->caps, PT_CPUID_14_ECX_SINGLE_RANGE),
		   PT_RULE_SINGLE_RANGE, 0);
	break_rule(check, check->caps->needs_branch_en && !ctl_bit(check, PT_CTL_BRANCH_EN),
		   PT_RULE_BRANCH_EN, 0);
	break_rule(check, !ctl_bit(check, PT_CTL_OS) && !ctl_bit(check, PT_CTL_USER),
		   PT_RULE_NO_LEVEL, 0);
	break_rule(check, ctl_bit(check, PT_CTL_FUP_ON_PTW) && !ctl_bit(check, PT_CTL_PTW_EN),
		   PT_RULE_FUP_ALONE, 0);
	break_rule(check, fabric && topa, PT_RULE_TOPA_IGNORED, 0);
}

static void check_status(struct check *check)
{
	uint64_t status = check->state->status;

	break_rule(check, status & ~STATUS_FIELDS, PT_RULE_STATUS_RESERVED, 0);
	check_needs(check, status, status_needs, ARRAY_SIZE(status_needs));
	break_rule(check, status & (PT_BIT(PT_STATUS_ERROR) | PT_BIT(PT_STATUS_STOPPED)),
		   PT_RULE_STATUS_HALTED, 0);
}

static void check_output(struct check *check)
{
	uint64_t base = check->state->output_base;
	uint64_t mask = (check->state->output_mask_ptrs & MASK(PT_OUTPUT_OFFSET_SHIFT)) |
			PT_OUTPUT_MASK_LOWEST;
	uint64_t offset = check->state->output_mask_ptrs >> PT_OUTPUT_OFFSET_SHIFT;

	if (ctl_bit(check, PT_CTL_FABRIC_EN))
		return;
	break_rule(check, base & MASK(PT_OUTPUT_BASE_SHIFT), PT_RULE_BASE_LOW, 0);
	break_rule(check, base & ~MASK(check->caps->physical_bits), PT_RULE_BASE_HIGH, 0);
	if (ctl_bit(check, PT_CTL_TOPA)) {
		break_rule(check, base & MASK(PT_TOPA_BASE_SHIFT) & ~MASK(PT_OUTPUT_BASE_SHIFT),
			   PT_RULE_BASE_TABLE, 0);
		return;
	}
	break_rule(check, base & mask & ~MASK(PT_OUTPUT_BASE_SHIFT), PT_RULE_BASE_MASK, 0);
	break_rule(check, mask & (mask + 1), PT_RULE_MASK_ONES, 0);
	break_rule(check, offset > mask, PT_RULE_OFFSET_HIGH, 0);
}

static bool canonical(const struct check *check, uint64_t address)
{
	uint64_t upper = address >> (check->caps->linear_bits - 1);

	return !upper || upper == ~(uint64_t)0 >> (check->caps->linear_bits - 1);
}

/*
 * 64-bit kernels are in the upper half of addresses. A range there with user code alone traces
 * nothing, and no register says so.
 */
static bool only_kernel(const struct check *check, uint64_t first)
{
	return first >> 63 && ctl_bit(check, PT_CTL_USER) && !ctl_bit(check, PT_CTL_OS);
}

static void check_ranges(struct check *check)
{
	uint32_t filters = 0;
	uint32_t dead = 0;
	uint32_t i;

	for (i = 0; i < PT_MSR_RTIT_ADDR_COUNT; i++) {
		uint32_t use = ctl_value(check, PT_CTL_ADDR0_CFG_SHIFT + PT_CTL_ADDR_CFG_WIDTH * i,
					 PT_CTL_ADDR_CFG_WIDTH);
		uint64_t a = check->state->addr[2 * i];
		uint64_t b = check->state->addr[2 * i + 1];

		if (!use)
			continue;
		break_rule(check, i >= pt_ranges(check->caps), PT_RULE_ADDR_CFG_RANGE, i);
		break_rule(check, use > PT_ADDR_CFG_TRACE_STOP, PT_RULE_ADDR_CFG_VALUE, i);
		break_rule(check, !canonical(check, a), PT_RULE_ADDR_A, i);
		break_rule(check, !canonical(check, b), PT_RULE_ADDR_B, i);
		break_rule(check, b < a, PT_RULE_ADDR_ORDER, i);
		break_rule(check, b >= a && only_kernel(check, a), PT_RULE_ADDR_LEVEL, i);
		if (use != PT_ADDR_CFG_FILTER)
			continue;
		filters++;
		if (b < a || only_kernel(check, a))
			dead++;
	}
	break_rule(check, filters && filters == dead, PT_RULE_FILTERS_EMPTY, 0);
}

static void check_filters(struct check *check)
{
	if (ctl_bit(check, PT_CTL_CR3_FILTER))
		break_rule(check, check->state->cr3_match & MASK(PT_CR3_MATCH_SHIFT),
			   PT_RULE_CR3_LOW, 0);
	check_ranges(check);
}

uint32_t pt_check(const struct pt_caps *caps, const struct pt_state *state,
		  void (*report)(void *ctx, enum pt_rule rule, uint32_t range), void *ctx)
{
	struct check check = {
		.caps = caps,
		.state = state,
		.report = report,
		.ctx = ctx,
	};

	check_ctl(&check);
	check_status(&check);
	check_output(&check);
	check_filters(&check);
	return check.failures;
}
