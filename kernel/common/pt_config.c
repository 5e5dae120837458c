// SPDX-License-Identifier: MIT
#include "pt_config.h"

#include "pt_check.h"
#include "ptkit/rtit_regs.h"

#define DRIVER_VERSION (0 << 16 | 1 << 8 | 0) /* also in windows/ptkit.rc */

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define OFFSET(name) ((uint32_t)__builtin_offsetof(struct ptkit_config, name))
#define REFUSE(config, name, reason) ((config)->refused = OFFSET(name), (reason))

/* The bit of CTL for each flag. */
static const struct {
	uint64_t flag;
	uint32_t ctl;
} flag_bits[] = {
	{PTKIT_TRACE_USER, PT_CTL_USER},	  {PTKIT_TRACE_KERNEL, PT_CTL_OS},
	{PTKIT_TRACE_BRANCHES, PT_CTL_BRANCH_EN}, {PTKIT_TRACE_TSC, PT_CTL_TSC_EN},
	{PTKIT_TRACE_MTC, PT_CTL_MTC_EN},	  {PTKIT_TRACE_CYC, PT_CTL_CYC_EN},
	{PTKIT_TRACE_PTWRITE, PT_CTL_PTW_EN},	  {PTKIT_TRACE_PTWRITE_FUP, PT_CTL_FUP_ON_PTW},
	{PTKIT_TRACE_POWER, PT_CTL_PWR_EVT_EN},	  {PTKIT_TRACE_EVENTS, PT_CTL_EVENT_EN},
	{PTKIT_TRACE_NO_RETC, PT_CTL_DIS_RETC},	  {PTKIT_TRACE_NO_TNT, PT_CTL_DIS_TNT},
};

static int make_flags(struct ptkit_config *config, struct pt_state *state)
{
	uint64_t unknown = config->flags & ~PTKIT_TRACE_CHILDREN; /* not a bit of CTL */
	uint32_t i;

	for (i = 0; i < COUNT(flag_bits); i++) {
		if (!(config->flags & flag_bits[i].flag))
			continue;
		unknown &= ~flag_bits[i].flag;
		state->ctl |= PT_BIT(flag_bits[i].ctl);
	}
	return unknown ? REFUSE(config, flags, PT_E_INVALID) : 0;
}

static int make_periods(struct ptkit_config *config, struct pt_state *state)
{
	if (config->mtc_freq > 15)
		return REFUSE(config, mtc_freq, PT_E_INVALID);
	if (config->cyc_thresh > 15)
		return REFUSE(config, cyc_thresh, PT_E_INVALID);
	if (config->psb_freq > 15)
		return REFUSE(config, psb_freq, PT_E_INVALID);
	state->ctl |= (uint64_t)config->mtc_freq << PT_CTL_MTC_FREQ_SHIFT;
	state->ctl |= (uint64_t)config->cyc_thresh << PT_CTL_CYC_THRESH_SHIFT;
	state->ctl |= (uint64_t)config->psb_freq << PT_CTL_PSB_FREQ_SHIFT;
	return 0;
}

static bool range_is_empty(const struct ptkit_range *range)
{
	return !range->first && !range->last && !range->action;
}

static int refuse_range(struct ptkit_config *config, uint32_t range)
{
	config->refused = OFFSET(ranges) + range * (uint32_t)sizeof(config->ranges[0]);
	return PT_E_INVALID;
}

static int make_ranges(struct ptkit_config *config, struct pt_state *state)
{
	uint32_t i;

	if (config->range_count > PTKIT_MOST_RANGES)
		return REFUSE(config, range_count, PT_E_INVALID);
	for (i = 0; i < PTKIT_MOST_RANGES; i++) {
		const struct ptkit_range *range = &config->ranges[i];
		uint32_t shift = PT_CTL_ADDR0_CFG_SHIFT + PT_CTL_ADDR_CFG_WIDTH * i;

		if (range->zero || (i >= config->range_count && !range_is_empty(range)))
			return refuse_range(config, i);
		if (i >= config->range_count)
			continue;
		if (range->action != PTKIT_RANGE_FILTER && range->action != PTKIT_RANGE_STOP)
			return refuse_range(config, i);
		state->ctl |= (uint64_t)range->action << shift;
		state->addr[2 * i] = range->first;
		state->addr[2 * i + 1] = range->last;
	}
	return 0;
}

#define FIELD(name, why)                                                                           \
	{                                                                                          \
		OFFSET(name), why                                                                  \
	}

/*
 * The field that a broken rule of the registers refuses, and the error. Output is checked
 * elsewhere.
 */
static const struct {
	uint32_t field;
	int error;
} rule_fields[PT_RULE_COUNT] = {
	[PT_RULE_CYC_EN] = FIELD(flags, PT_E_UNSUPPORTED),
	[PT_RULE_PWR_EVT_EN] = FIELD(flags, PT_E_UNSUPPORTED),
	[PT_RULE_FUP_ON_PTW] = FIELD(flags, PT_E_UNSUPPORTED),
	[PT_RULE_MTC_EN] = FIELD(flags, PT_E_UNSUPPORTED),
	[PT_RULE_PTW_EN] = FIELD(flags, PT_E_UNSUPPORTED),
	[PT_RULE_BRANCH_EN] = FIELD(flags, PT_E_UNSUPPORTED),
	[PT_RULE_EVENT_EN] = FIELD(flags, PT_E_UNSUPPORTED),
	[PT_RULE_DIS_TNT] = FIELD(flags, PT_E_UNSUPPORTED),
	[PT_RULE_NO_LEVEL] = FIELD(flags, PT_E_INVALID),
	[PT_RULE_FUP_ALONE] = FIELD(flags, PT_E_INVALID),
	[PT_RULE_MTC_FREQ] = FIELD(mtc_freq, PT_E_UNSUPPORTED),
	[PT_RULE_MTC_FREQ_VALUE] = FIELD(mtc_freq, PT_E_UNSUPPORTED),
	[PT_RULE_MTC_FREQ_ALONE] = FIELD(mtc_freq, PT_E_INVALID),
	[PT_RULE_CYC_THRESH] = FIELD(cyc_thresh, PT_E_UNSUPPORTED),
	[PT_RULE_CYC_THRESH_VALUE] = FIELD(cyc_thresh, PT_E_UNSUPPORTED),
	[PT_RULE_CYC_THRESH_ALONE] = FIELD(cyc_thresh, PT_E_INVALID),
	[PT_RULE_PSB_FREQ] = FIELD(psb_freq, PT_E_UNSUPPORTED),
	[PT_RULE_PSB_FREQ_VALUE] = FIELD(psb_freq, PT_E_UNSUPPORTED),
	[PT_RULE_CR3_FILTER] = FIELD(process, PT_E_UNSUPPORTED),
	[PT_RULE_TOPA] = FIELD(output, PT_E_UNSUPPORTED),
	[PT_RULE_SINGLE_RANGE] = FIELD(output, PT_E_UNSUPPORTED),
	[PT_RULE_ADDR_CFG_RANGE] = FIELD(range_count, PT_E_UNSUPPORTED),
	[PT_RULE_ADDR_A] = FIELD(ranges, PT_E_INVALID),
	[PT_RULE_ADDR_B] = FIELD(ranges, PT_E_INVALID),
	[PT_RULE_ADDR_ORDER] = FIELD(ranges, PT_E_INVALID),
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
	if (rule_fields[rule].field == OFFSET(ranges))
		refuse_range(first->config, range);
}

bool pt_needs_branch_en(uint32_t signature)
{
	static const uint32_t broadwells[] = {0x306d0, 0x40670, 0x406f0, 0x50660};
	uint32_t i;

	for (i = 0; i < COUNT(broadwells); i++) {
		if ((signature & ~15U) == broadwells[i])
			return true;
	}
	return false;
}

bool pt_single_range_is_limited(uint32_t signature)
{
	static const uint8_t models[] = {
		0x3d, 0x47, 0x4f, 0x56, /* Broadwell */
		0x4e, 0x5e, 0x55, 0x8e, 0x9e, 0xa5, 0xa6, /* Skylake to Comet Lake */
		0x66, 0x6a, 0x6c, 0x7d, 0x7e, /* Cannon Lake, Ice Lake */
		0x5c, 0x5f, 0x7a, /* Goldmont, Goldmont Plus */
	};
	uint32_t model = ((signature >> 12) & 0xf0) | ((signature >> 4) & 0xf);
	uint32_t i;

	if (((signature >> 8) & 0xf) != 6)
		return true;
	for (i = 0; i < COUNT(models); i++) {
		if (models[i] == model)
			return false;
	}
	return true;
}

void pt_limits_make(const struct ptkit_caps *caps, uint64_t most_bytes,
		    struct pt_config_limits *limits)
{
	uint32_t outputs = caps->cpuid_14_0[2];
	bool topa = outputs & PT_BIT(PT_CPUID_14_ECX_TOPA);
	bool limited = pt_single_range_is_limited(caps->cpuid_1_eax);

	limits->features = topa ? PTKIT_FEATURE_TOPA : 0;
	if (topa && (outputs & PT_BIT(PT_CPUID_14_ECX_TOPA_MULTIPLE)) && caps->interrupts)
		limits->features |= PTKIT_FEATURE_WAKE_UP;
	if (outputs & PT_BIT(PT_CPUID_14_ECX_SINGLE_RANGE))
		limits->features |= PTKIT_FEATURE_SINGLE_RANGE;
	if (caps->bts)
		limits->features |= PTKIT_FEATURE_BTS;
	if (caps->in_vmx)
		limits->features |= PTKIT_FEATURE_VMX;
	limits->most_bytes = most_bytes;
	limits->most_single_bytes = limited ? PT_TOPA_LEAST_BYTES : most_bytes;
}

void pt_query_make(const struct ptkit_caps *caps, const struct pt_config_limits *limits,
		   struct ptkit_query *query)
{
	uint32_t i;

	query->abi = PTKIT_ABI;
	query->driver_version = DRIVER_VERSION;
	query->features = limits->features;
	query->cpuid_1_eax = caps->cpuid_1_eax;
	query->cpuid_7_ebx = caps->cpuid_7_ebx;
	for (i = 0; i < 4; i++) {
		query->cpuid_14_0[i] = caps->cpuid_14_0[i];
		query->cpuid_14_1[i] = caps->cpuid_14_1[i];
		query->cpuid_15[i] = caps->cpuid_15[i];
	}
	query->physical_bits = caps->physical_bits;
	query->nominal_ratio = caps->nominal_ratio;
	query->most_bytes = limits->most_bytes;
	query->most_single_bytes = limits->most_single_bytes;
}

static bool is_power_of_two(uint64_t value)
{
	return value && !(value & (value - 1));
}

static int check_output(const struct pt_config_limits *limits, struct ptkit_config *config)
{
	bool single = config->output == PTKIT_OUTPUT_SINGLE_RANGE;
	uint64_t bytes = config->buffer_bytes;

	if (bytes > limits->most_bytes)
		return REFUSE(config, buffer_bytes, PT_E_INVALID);
	if (config->output > PTKIT_OUTPUT_BTS)
		return REFUSE(config, output, PT_E_INVALID);
	if (config->mode > PTKIT_MODE_RING || (single && config->mode != PTKIT_MODE_RING))
		return REFUSE(config, mode, PT_E_INVALID);
	if (single && bytes > limits->most_single_bytes)
		return REFUSE(config, buffer_bytes, PT_E_UNSUPPORTED);
	if (!bytes || bytes % PT_TOPA_LEAST_BYTES || (single && !is_power_of_two(bytes)))
		return REFUSE(config, buffer_bytes, PT_E_INVALID);
	return 0;
}

static int check_wake_up(const struct pt_config_limits *limits, struct ptkit_config *config)
{
	uint64_t bytes = config->wake_up_bytes;
	bool branches = config->output == PTKIT_OUTPUT_BTS;

	if (!bytes)
		return 0;
	if (!branches && !(limits->features & PTKIT_FEATURE_WAKE_UP))
		return REFUSE(config, wake_up_bytes, PT_E_UNSUPPORTED);
	if (bytes < PT_TOPA_LEAST_BYTES || !is_power_of_two(bytes) ||
	    bytes > config->buffer_bytes / 4 || config->mode != PTKIT_MODE_FULL ||
	    (!branches && config->output != PTKIT_OUTPUT_TOPA))
		return REFUSE(config, wake_up_bytes, PT_E_INVALID);
	return 0;
}

static int check_sideband(const struct pt_config_limits *limits, struct ptkit_config *config)
{
	uint64_t bytes = config->sideband_bytes;

	if (!bytes)
		return 0;
	if (!(limits->features & PTKIT_FEATURE_SIDEBAND))
		return REFUSE(config, sideband_bytes, PT_E_UNSUPPORTED);
	if (bytes < 4096 || !is_power_of_two(bytes) || bytes > PTKIT_MOST_SIDEBAND_BYTES)
		return REFUSE(config, sideband_bytes, PT_E_INVALID);
	return 0;
}

/* Branch Trace Store takes no option of packets. */
static int check_bts(const struct ptkit_caps *caps, const struct pt_config_limits *limits,
		     struct ptkit_config *config)
{
	const uint64_t levels = PTKIT_TRACE_USER | PTKIT_TRACE_KERNEL;
	uint64_t wanted = config->flags & levels;

	if (!(limits->features & PTKIT_FEATURE_BTS))
		return REFUSE(config, output, PT_E_UNSUPPORTED);
	if (config->target == PTKIT_TARGET_TASK)
		return REFUSE(config, target, PT_E_INVALID);
	if (!wanted || (config->flags & ~(levels | PTKIT_TRACE_BRANCHES | PTKIT_TRACE_CHILDREN)))
		return REFUSE(config, flags, PT_E_INVALID);
	if (wanted != levels && !caps->bts_levels)
		return REFUSE(config, flags, PT_E_UNSUPPORTED);
	if (config->mtc_freq)
		return REFUSE(config, mtc_freq, PT_E_INVALID);
	if (config->cyc_thresh)
		return REFUSE(config, cyc_thresh, PT_E_INVALID);
	if (config->psb_freq)
		return REFUSE(config, psb_freq, PT_E_INVALID);
	if (config->range_count)
		return REFUSE(config, range_count, PT_E_INVALID);
	return 0;
}

static int check_rules(const struct ptkit_caps *caps, struct ptkit_config *config,
		       const struct pt_state *state)
{
	const struct pt_caps known = {
		.leaf_14_ebx = caps->cpuid_14_0[1],
		.leaf_14_ecx = caps->cpuid_14_0[2],
		.leaf_14_1_eax = caps->cpuid_14_1[0],
		.leaf_14_1_ebx = caps->cpuid_14_1[1],
		.physical_bits = caps->physical_bits,
		.linear_bits = caps->linear_bits,
		.needs_branch_en = pt_needs_branch_en(caps->cpuid_1_eax),
	};
	struct first_rule first = {config, 0};

	pt_check(&known, state, note_rule, &first);
	return first.error;
}

int pt_config_make(const struct ptkit_caps *caps, const struct pt_config_limits *limits,
		   struct ptkit_config *config, bool cr3_filter, struct pt_state *state)
{
	int error;

	error = check_output(limits, config);
	if (!error)
		error = check_wake_up(limits, config);
	if (!error)
		error = check_sideband(limits, config);
	if (!error && config->output == PTKIT_OUTPUT_BTS)
		error = check_bts(caps, limits, config);
	else if (!error)
		error = make_flags(config, state);
	if (!error)
		error = make_periods(config, state);
	if (!error)
		error = make_ranges(config, state);
	if (error || config->output == PTKIT_OUTPUT_BTS)
		return error;
	if (config->output == PTKIT_OUTPUT_TOPA)
		state->ctl |= PT_BIT(PT_CTL_TOPA);
	if (cr3_filter)
		state->ctl |= PT_BIT(PT_CTL_CR3_FILTER);
	return check_rules(caps, config, state);
}

void pt_topa_options_make(const struct ptkit_caps *caps, const struct ptkit_config *config,
			  struct pt_topa_options *options)
{
	uint64_t interrupt_bytes = config->wake_up_bytes / 2;

	if (config->wake_up_bytes && interrupt_bytes < PT_TOPA_LEAST_BYTES)
		interrupt_bytes = PT_TOPA_LEAST_BYTES;
	options->interrupt_bytes = interrupt_bytes;
	options->ring = config->mode == PTKIT_MODE_RING || interrupt_bytes;
	options->one_entry = !(caps->cpuid_14_0[2] & PT_BIT(PT_CPUID_14_ECX_TOPA_MULTIPLE));
	options->physical_bits = caps->physical_bits;
	options->largest_size = PT_TOPA_LARGEST_SIZE;
	/* INT follows after so many bytes: no region is longer. */
	while (interrupt_bytes && options->largest_size &&
	       PT_TOPA_LEAST_BYTES << options->largest_size > interrupt_bytes)
		options->largest_size--;
}
