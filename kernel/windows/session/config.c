// SPDX-License-Identifier: GPL-2.0 OR MIT
#include "session/config.h"

#include "common/pt_config.h"
#include "machine/caps.h"
#include "machine/machine.h"
#include "machine/reasons.h"
#include "ptkit/rtit_regs.h"
#include "sideband/system.h"
#include "unit/running.h"

#define REFUSE(config, field, reason)                                                              \
	((config)->refused = FIELD_OFFSET(struct ptkit_config, field), (reason))

static const uint64_t levels = PTKIT_TRACE_USER | PTKIT_TRACE_KERNEL;

static bool has_shadow(void)
{
	return ptkit_machine_caps.system & PTKIT_SYSTEM_KVA_SHADOW;
}

uint64_t ptkit_most_single_bytes(void)
{
	bool limited = pt_single_range_is_limited(ptkit_machine_caps.caps.cpuid_1_eax);

	return limited ? PT_TOPA_LEAST_BYTES : PTKIT_MOST_BYTES;
}

uint64_t ptkit_features(void)
{
	const struct ptkit_caps *caps = &ptkit_machine_caps.caps;
	uint32_t outputs = caps->cpuid_14_0[2];
	uint64_t features = PTKIT_FEATURE_SIDEBAND;

	if (ptkit_machine_caps.reason)
		return 0;
	if (outputs & PT_BIT(PT_CPUID_14_ECX_TOPA))
		features |= PTKIT_FEATURE_TOPA;
	if ((outputs & PT_BIT(PT_CPUID_14_ECX_TOPA)) &&
	    (outputs & PT_BIT(PT_CPUID_14_ECX_TOPA_MULTIPLE)) && caps->interrupts)
		features |= PTKIT_FEATURE_WAKE_UP;
	if (outputs & PT_BIT(PT_CPUID_14_ECX_SINGLE_RANGE))
		features |= PTKIT_FEATURE_SINGLE_RANGE;
	if (caps->cpuid_14_0[1] & PT_BIT(PT_CPUID_14_EBX_CR3_FILTER))
		features |= PTKIT_FEATURE_PROCESS | (has_shadow() ? 0 : PTKIT_FEATURE_PROCESS_BOTH);
	if (caps->bts)
		features |= PTKIT_FEATURE_BTS;
	if (caps->in_vmx)
		features |= PTKIT_FEATURE_VMX;
	return features;
}

static bool affinity_has(const struct ptkit_windows_config *config, PROCESSOR_NUMBER place)
{
	return place.Group < PTKIT_MOST_GROUPS &&
	       (config->affinity[place.Group] >> place.Number & 1);
}

bool ptkit_config_has_cpu(const struct ptkit_windows_config *config, uint32_t cpu)
{
	switch (config->config.target) {
	case PTKIT_TARGET_CPU:
		return cpu == config->config.cpu;
	case PTKIT_TARGET_AFFINITY:
		return affinity_has(config, ptkit_machine.cpu_place(cpu));
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
		PROCESSOR_NUMBER place = ptkit_machine.cpu_place(i);

		if (!affinity_has(config, place))
			continue;
		any = true;
		unknown[place.Group] &= ~(1ULL << place.Number);
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
static uint32_t check_process(struct ptkit_config *config)
{
	uint64_t cr3;
	uint32_t reason;

	if (!config->process)
		return PTKIT_REASON_NONE;
	if (config->output == PTKIT_OUTPUT_BTS || !(ptkit_features() & PTKIT_FEATURE_PROCESS))
		return REFUSE(config, process, PTKIT_REASON_UNSUPPORTED);
	if ((config->flags & levels) == levels && has_shadow())
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

static uint32_t check_common(struct ptkit_config *config, struct pt_state *state)
{
	const struct ptkit_caps *caps = &ptkit_machine_caps.caps;
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
		.features = ptkit_features(),
		.most_bytes = PTKIT_MOST_BYTES,
		.most_single_bytes = ptkit_most_single_bytes(),
		.bts_levels = caps->bts_levels,
	};

	return ptkit_reason(pt_config_make(&known, &limits, config, config->process, state));
}

uint32_t ptkit_make_state(struct ptkit_windows_config *config, struct pt_state *state)
{
	bool hands_over =
		config->config.output == PTKIT_OUTPUT_BTS && config->config.mode == PTKIT_MODE_FULL;
	uint32_t reason = ptkit_machine_caps.reason;

	if (!reason)
		reason = check_target(config);
	if (!reason)
		reason = add_module(config);
	if (!reason)
		reason = check_common(&config->config, state);
	if (!reason)
		reason = check_process(&config->config);
	if (!reason && hands_over && !ptkit_has_interrupts())
		reason = REFUSE(&config->config, mode, PTKIT_REASON_INTERRUPT);
	return reason;
}
