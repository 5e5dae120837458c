/* SPDX-License-Identifier: MIT */
/* Abilities of a processor, from CPUID and registers. */
#ifndef PTKIT_COMMON_PT_PROCESSOR_H
#define PTKIT_COMMON_PT_PROCESSOR_H

#include "pt_ops.h"

#ifdef __cplusplus
extern "C" {
#endif

struct ptkit_caps {
	uint32_t cpuid_1_eax;
	uint32_t cpuid_7_ebx;
	uint32_t cpuid_14_0[4];
	uint32_t cpuid_14_1[4];
	uint32_t cpuid_15[4];
	uint8_t physical_bits;
	uint8_t linear_bits;
	uint8_t nominal_ratio; /* of the TSC to 100 MHz, from PLATFORM_INFO; 0: unknown */
	bool address_masking; /* LAM: CR3 has bits that CR3_MATCH may or may not be compared with */
	bool in_vmx; /* Processor Trace works in VMX operation */
	bool interrupts; /* the interrupt of ToPA can be seen: a guest may have no PMU */
	bool bts; /* Branch Trace Store */
	bool bts_levels; /* Branch Trace Store of user code alone or of kernel code alone */
};

typedef void pt_cpuid_fn(uint32_t leaf, uint32_t subleaf, uint32_t words[4]);

/* The words of leaves 7H and 14H alone; all others are zero. */
void pt_read_words(pt_cpuid_fn *cpuid, struct ptkit_caps *caps);

/* All but the widths of addresses, of the processor that executes this. */
void pt_read_caps(pt_cpuid_fn *cpuid, const struct pt_ops *ops, struct ptkit_caps *caps);

/* Hybrid processors: what one kind of core lacks, is used on none. */
void pt_keep_common_words(struct ptkit_caps *caps, const struct ptkit_caps *other);
void pt_keep_common(struct ptkit_caps *caps, const struct ptkit_caps *other);

#ifdef __cplusplus
}
#endif

#endif /* PTKIT_COMMON_PT_PROCESSOR_H */
