/* SPDX-License-Identifier: MIT */
/*
 * Checks whether a processor accepts a configuration, before any register is written. Reports every
 * broken rule.
 */
#ifndef PTKIT_COMMON_PT_CHECK_H
#define PTKIT_COMMON_PT_CHECK_H

#include "pt_sequence.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Capabilities, as CPUID reports them. */
struct pt_caps {
	uint32_t leaf_14_ebx; /* CPUID.(EAX=14H,ECX=0) */
	uint32_t leaf_14_ecx;
	uint32_t leaf_14_1_eax; /* CPUID.(EAX=14H,ECX=1); 0 where the leaf has no sub-leaf 1 */
	uint32_t leaf_14_1_ebx;
	uint8_t physical_bits; /* MAXPHYADDR */
	uint8_t linear_bits; /* 48, or 57 where five levels of paging are on */
	bool needs_branch_en; /* Broadwell */
};

enum pt_rule {
#define PT_RULE(name, msr, field, effect, words, section) PT_RULE_##name,
#include "pt_rules.def"
#undef PT_RULE
	PT_RULE_COUNT
};

enum pt_effect {
	PT_EFFECT_FAULT,
	PT_EFFECT_ERROR,
	PT_EFFECT_NOTHING,
	PT_EFFECT_UNTRACED,
};

struct pt_rule_text {
	uint32_t msr; /* 0: of the range */
	enum pt_effect effect;
	const char *field;
	const char *words;
	const char *section;
};

const struct pt_rule_text *pt_describe_rule(enum pt_rule rule);

/* The number of address ranges, 0 to 4. */
uint32_t pt_ranges(const struct pt_caps *caps);

/*
 * Reports every rule that `state`, with TraceEn set, breaks; `range` is the address range
 * concerned, or 0. `report` may be null. Returns how many of them make tracing fail: those that
 * fault, or lead to an error.
 */
uint32_t pt_check(const struct pt_caps *caps, const struct pt_state *state,
		  void (*report)(void *ctx, enum pt_rule rule, uint32_t range), void *ctx);

#ifdef __cplusplus
}
#endif

#endif /* PTKIT_COMMON_PT_CHECK_H */
