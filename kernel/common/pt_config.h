/* SPDX-License-Identifier: MIT */
/*
 * Turns a session's configuration into registers and tables, and checks it. What is traced where,
 * and by which of a system's means, is the driver's.
 */
#ifndef PTKIT_COMMON_PT_CONFIG_H
#define PTKIT_COMMON_PT_CONFIG_H

#include "pt_processor.h"
#include "pt_sequence.h"
#include "pt_topa.h"
#include "ptkit/ptkit_abi.h"

#ifdef __cplusplus
extern "C" {
#endif

struct pt_config_limits {
	uint64_t features; /* PTKIT_FEATURE_* */
	uint64_t most_bytes;
	uint64_t most_single_bytes; /* with PTKIT_OUTPUT_SINGLE_RANGE */
};

/* Broadwell faults without BranchEn (erratum BDM106). `signature`: CPUID.01H:EAX. */
bool pt_needs_branch_en(uint32_t signature);

/*
 * Errata TGL052, ADL037 and RPL017: a single range above 4 KiB does not always work. False where it
 * does: processors before Tiger Lake.
 */
bool pt_single_range_is_limited(uint32_t signature);

/*
 * Limits of the processor for any driver, with buffers of at most `most_bytes`. Features of the
 * system are missing: the driver adds its own.
 */
void pt_limits_make(const struct ptkit_caps *caps, uint64_t most_bytes,
		    struct pt_config_limits *limits);

/* Sets all fields but tsc_khz and cpus. */
void pt_query_make(const struct ptkit_caps *caps, const struct pt_config_limits *limits,
		   struct ptkit_query *query);

/*
 * Sets `state`, which is zero, for everything but output and CR3_MATCH; with `cr3_filter` the
 * processor compares CR3. PT_E_INVALID or PT_E_UNSUPPORTED, with config->refused, if a field has a
 * reserved value, or asks for what the limits or the processor lack.
 */
int pt_config_make(const struct ptkit_caps *caps, const struct pt_config_limits *limits,
		   struct ptkit_config *config, bool cr3_filter, struct pt_state *state);

/*
 * The tables of a checked configuration. With wake-ups at most `wake_up_bytes` are written between
 * two interrupts.
 */
void pt_topa_options_make(const struct ptkit_caps *caps, const struct ptkit_config *config,
			  struct pt_topa_options *options);

#ifdef __cplusplus
}
#endif

#endif /* PTKIT_COMMON_PT_CONFIG_H */
