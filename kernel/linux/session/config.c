// SPDX-License-Identifier: GPL-2.0 OR MIT
#include <linux/bits.h>
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/mm.h>
#include <linux/moduleparam.h>
#include <linux/stddef.h>

#include "common/pt_config.h"
#include "follow/follow.h"
#include "machine/errors.h"
#include "ptkit/rtit_regs.h"
#include "session/config.h"
#include "session/probes.h"
#include "unit/reserve.h"

#define REFUSE(config, field, reason)                                                              \
	((config)->refused = offsetof(struct ptkit_config, field), (reason))

static bool large_single_range;
module_param(large_single_range, bool, 0444);
MODULE_PARM_DESC(large_single_range, "single ranges above 4 KiB on all processors");

u64 ptkit_most_single_bytes(const struct ptkit_caps *caps)
{
	bool limited = pt_single_range_is_limited(caps->cpuid_1_eax) && !large_single_range;

	return limited ? PAGE_SIZE : PTKIT_MOST_BYTES;
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
	if (ptkit_probes_available())
		features |= PTKIT_FEATURE_PROCESS | PTKIT_FEATURE_PROCESS_BOTH |
			    PTKIT_FEATURE_TASK | PTKIT_FEATURE_CHILDREN |
			    PTKIT_FEATURE_SIDEBAND;
	if (caps->bts && ptkit_probes_available())
		features |= PTKIT_FEATURE_BTS;
	if (caps->in_vmx)
		features |= PTKIT_FEATURE_VMX;
	if (ptkit_reserve_needed())
		features |= PTKIT_FEATURE_RESERVES;
	return features;
}

static int check_process(struct ptkit_config *config)
{
	if (config->process < 0 || (config->process && config->target == PTKIT_TARGET_TASK))
		return REFUSE(config, process, -EINVAL);
	if (config->process && !ptkit_probes_available())
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
	if (config->target > PTKIT_TARGET_TASK)
		return REFUSE(config, target, -EINVAL);
	if (task && !ptkit_probes_available())
		return REFUSE(config, target, -EOPNOTSUPP);
	if (config->target != PTKIT_TARGET_CPU && config->cpu)
		return REFUSE(config, cpu, -EINVAL);
	if (task ? config->task <= 0 : config->task)
		return REFUSE(config, task, -EINVAL);
	return check_process(config);
}

int ptkit_make_state(const struct ptkit_caps *caps, struct ptkit_config *config,
		     struct pt_state *state)
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
	const struct pt_config_limits limits = {
		.features = ptkit_features(caps),
		.most_bytes = PTKIT_MOST_BYTES,
		.most_single_bytes = ptkit_most_single_bytes(caps),
		.bts_levels = caps->bts_levels,
	};
	int error = check_target(config);
	bool cr3_filter;

	if (error)
		return error;
	cr3_filter = config->process && !ptkit_follow_switches(caps, config);
	return ptkit_errno(pt_config_make(&known, &limits, config, cr3_filter, state));
}
