/* SPDX-License-Identifier: MIT */
/*
 * Turns a session's configuration into registers, and checks it. What is traced where, and by which
 * of a system's means, is the driver's.
 */
#ifndef PTKIT_COMMON_PT_CONFIG_H
#define PTKIT_COMMON_PT_CONFIG_H

#include "pt_check.h"
#include "ptkit/ptkit_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pt_config_limits {
	uint64_t features; /* PTKIT_FEATURE_* */
	uint64_t most_bytes;
	uint64_t most_single_bytes; /* see pt_most_single_bytes() */
	bool bts_levels; /* Branch Trace Store of user code alone or of kernel code alone */
};

/* Broadwell faults without BranchEn (erratum BDM106). `signature`: CPUID.01H:EAX. */
bool pt_needs_branch_en(uint32_t signature);

/*
 * Errata TGL052, ADL037 and RPL017: a single range above 4 KiB does not always work. False where it
 * does: processors before Tiger Lake.
 */
bool pt_single_range_is_limited(uint32_t signature);

/*
 * Sets `state`, which is zero, for everything but output and CR3_MATCH; with `cr3_filter` the
 * processor compares CR3. PT_E_INVALID or PT_E_UNSUPPORTED, with config->refused, if a field has a
 * reserved value, or asks for what the limits or the processor lack.
 */
int pt_config_make(const struct pt_caps *caps, const struct pt_config_limits *limits,
		   struct ptkit_config *config, bool cr3_filter, struct pt_state *state);

#ifdef __cplusplus
}
#endif

#endif /* PTKIT_COMMON_PT_CONFIG_H */
