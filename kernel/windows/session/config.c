// SPDX-License-Identifier: GPL-2.0 OR MIT
#include "session/config.h"

#include "machine/caps.h"
#include "machine/machine.h"
#include "machine/reasons.h"
#include "ptkit/rtit_regs.h"
#include "sideband/system.h"
#include "unit/running.h"

#define MOST_BYTES (1ULL << 30)

#define REFUSE(config, field, reason)                                                              \
	((config)->refused = FIELD_OFFSET(struct ptkit_config, field), (reason))

static bool has_shadow(void)
{
	return ptkit_machine_caps.system & PTKIT_SYSTEM_KVA_SHADOW;
}

void ptkit_limits_make(struct pt_config_limits *limits)
{
	const struct ptkit_caps *caps = &ptkit_machine_caps.caps;

	pt_limits_make(caps, MOST_BYTES, limits);
	limits->features |= PTKIT_FEATURE_SIDEBAND;
	if (caps->cpuid_14_0[1] & PT_BIT(PT_CPUID_14_EBX_CR3_FILTER))
		limits->features |=
			PTKIT_FEATURE_PROCESS | (has_shadow() ? 0 : PTKIT_FEATURE_PROCESS_BOTH);
	if (ptkit_machine_caps.reason)
		limits->features = 0;
}

static bool affinity_has(const struct ptkit_windows_config *config, PROCESSOR_NUMBER number)
{
	return number.Group < PTKIT_MOST_GROUPS &&
	       (config->affinity[number.Group] >> number.Number & 1);
}

bool ptkit_config_has_cpu(const struct ptkit_windows_config *config, uint32_t cpu)
{
	switch (config->config.target) {
	case PTKIT_TARGET_CPU:
		return cpu == config->config.cpu;
	case PTKIT_TARGET_AFFINITY:
		return affinity_has(config, ptkit_machine.cpu_number(cpu));
	default:
		return true;
	}
}

/* Whether affinity[] names a processor, and none that is not there. */
static bool affinity_is_valid(const struct ptkit_windows_config *config)
{
	uint64_t unknown[PTKIT_MOST_GROUPS];
	bool any = false;
	uint32_t i;

	RtlCopyMemory(unknown, config->affinity, sizeof(unknown));
	for (i = 0; i < ptkit_machine.cpu_count(); i++) {
		PROCESSOR_NUMBER number = ptkit_machine.cpu_number(i);

		if (!affinity_has(config, number))
			continue;
		any = true;
		unknown[number.Group] &= ~(1ULL << number.Number);
	}
	for (i = 0; i < PTKIT_MOST_GROUPS; i++)
		any = any && !unknown[i];
	return any;
}

static uint32_t check_affinity(struct ptkit_windows_config *config)
{
	bool wanted = config->config.target == PTKIT_TARGET_AFFINITY;
	bool given = false;
	uint32_t i;

	for (i = 0; i < PTKIT_MOST_GROUPS; i++)
		given = given || config->affinity[i];
	if (wanted ? affinity_is_valid(config) : !given)
		return PTKIT_REASON_NONE;
	config->config.refused = FIELD_OFFSET(struct ptkit_windows_config, affinity);
	return PTKIT_REASON_FIELD;
}

static uint32_t check_target(struct ptkit_windows_config *windows)
{
	struct ptkit_config *config = &windows->config;
	bool cpu = config->target == PTKIT_TARGET_CPU;

	if (config->target > PTKIT_TARGET_AFFINITY)
		return REFUSE(config, target, PTKIT_REASON_FIELD);
	if (config->target == PTKIT_TARGET_TASK)
		return REFUSE(config, target, PTKIT_REASON_UNSUPPORTED);
	if (cpu ? config->cpu >= ptkit_machine.cpu_count() : config->cpu)
		return REFUSE(config, cpu, PTKIT_REASON_FIELD);
	if (config->task)
		return REFUSE(config, task, PTKIT_REASON_FIELD);
	if (config->process < 0)
		return REFUSE(config, process, PTKIT_REASON_FIELD);
	if (config->flags & PTKIT_TRACE_CHILDREN)
		return REFUSE(config, flags, PTKIT_REASON_UNSUPPORTED);
	return check_affinity(windows);
}

/* Branch Trace Store has no filter by CR3. */
static uint32_t check_process(struct ptkit_config *config, uint64_t features)
{
	const uint64_t levels = PTKIT_TRACE_USER | PTKIT_TRACE_KERNEL;
	uint64_t cr3;
	uint32_t reason;

	if (!config->process)
		return PTKIT_REASON_NONE;
	if (config->output == PTKIT_OUTPUT_BTS || !(features & PTKIT_FEATURE_PROCESS))
		return REFUSE(config, process, PTKIT_REASON_UNSUPPORTED);
	if ((config->flags & levels) == levels && !(features & PTKIT_FEATURE_PROCESS_BOTH))
		return REFUSE(config, process, PTKIT_REASON_UNSUPPORTED);
	reason = ptkit_find_cr3(config, &cr3);
	return reason ? REFUSE(config, process, reason) : PTKIT_REASON_NONE;
}

uint32_t ptkit_find_cr3(const struct ptkit_config *config, uint64_t *cr3)
{
	HANDLE pid = (HANDLE)(ULONG_PTR)config->process;
	uint64_t kernel = 0;
	uint64_t user = 0;

	if (!NT_SUCCESS(ptkit_machine.page_tables(pid, &kernel, &user)))
		return PTKIT_REASON_NO_PROCESS;
	*cr3 = config->flags & PTKIT_TRACE_USER ? user : kernel;
	return *cr3 ? PTKIT_REASON_NONE : PTKIT_REASON_TABLES;
}

static uint32_t refuse_module(struct ptkit_windows_config *config, uint32_t reason)
{
	config->config.refused = FIELD_OFFSET(struct ptkit_windows_config, module);
	return reason;
}

/* The module's image becomes a range. */
static uint32_t add_module(struct ptkit_windows_config *windows)
{
	struct ptkit_config *config = &windows->config;
	struct ptkit_range *range;

	windows->module_base = 0;
	windows->module_bytes = 0;
	if (!windows->module[0])
		return PTKIT_REASON_NONE;
	if (windows->module[sizeof(windows->module) - 1])
		return refuse_module(windows, PTKIT_REASON_FIELD);
	if (config->range_count >= PTKIT_MOST_RANGES)
		return REFUSE(config, range_count, PTKIT_REASON_FIELD);
	if (!ptkit_find_driver(windows->module, &windows->module_base, &windows->module_bytes) ||
	    !windows->module_bytes)
		return refuse_module(windows, PTKIT_REASON_NO_MODULE);
	range = &config->ranges[config->range_count++];
	range->first = windows->module_base;
	range->last = windows->module_base + windows->module_bytes - 1;
	range->action = PTKIT_RANGE_FILTER;
	return PTKIT_REASON_NONE;
}

uint32_t ptkit_make_state(struct ptkit_windows_config *windows, struct pt_state *state)
{
	struct ptkit_config *config = &windows->config;
	bool hands_over = config->output == PTKIT_OUTPUT_BTS && config->mode == PTKIT_MODE_FULL;
	uint32_t reason = ptkit_machine_caps.reason;
	struct pt_config_limits limits;

	ptkit_limits_make(&limits);
	if (!reason)
		reason = check_target(windows);
	if (!reason)
		reason = add_module(windows);
	if (!reason)
		reason = ptkit_reason(pt_config_make(&ptkit_machine_caps.caps, &limits, config,
						     config->process, state));
	if (!reason)
		reason = check_process(config, limits.features);
	if (!reason && hands_over && !ptkit_has_interrupts())
		reason = REFUSE(config, mode, PTKIT_REASON_INTERRUPT);
	return reason;
}
