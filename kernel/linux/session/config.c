// SPDX-License-Identifier: GPL-2.0 OR MIT
#include <linux/cpumask.h>
#include <linux/errno.h>
#include <linux/moduleparam.h>
#include <linux/sizes.h>
#include <linux/stddef.h>

#include "follow/follow.h"
#include "machine/caps.h"
#include "machine/errors.h"
#include "session/config.h"
#include "session/probes.h"
#include "unit/reserve.h"

#define REFUSE(config, field, reason)                                                              \
	((config)->refused = offsetof(struct ptkit_config, field), (reason))

static bool large_single_range;
module_param(large_single_range, bool, 0444);
MODULE_PARM_DESC(large_single_range, "single ranges above 4 KiB on all processors");

void ptkit_limits_make(struct pt_config_limits *limits)
{
	const u64 most_bytes = (u64)SZ_1G * 4;

	pt_limits_make(&ptkit_caps, most_bytes, limits);
	if (large_single_range)
		limits->most_single_bytes = most_bytes;
	if (ptkit_probes_available())
		limits->features |= PTKIT_FEATURE_PROCESS | PTKIT_FEATURE_PROCESS_BOTH |
				    PTKIT_FEATURE_TASK | PTKIT_FEATURE_CHILDREN |
				    PTKIT_FEATURE_SIDEBAND;
	else
		limits->features &= ~PTKIT_FEATURE_BTS;
	if (ptkit_reserve_needed())
		limits->features |= PTKIT_FEATURE_RESERVES;
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

int ptkit_make_state(struct ptkit_config *config, struct pt_state *state)
{
	struct pt_config_limits limits;
	int error = check_target(config);
	bool cr3_filter;

	if (error)
		return error;
	ptkit_limits_make(&limits);
	cr3_filter = config->process && !ptkit_follow_switches(config);
	return ptkit_errno(pt_config_make(&ptkit_caps, &limits, config, cr3_filter, state));
}
