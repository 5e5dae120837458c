/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The capabilities that all processors have, as read when the module is loaded. */
#ifndef PTKIT_LINUX_CAPS_H
#define PTKIT_LINUX_CAPS_H

#include <linux/types.h>

struct ptkit_caps {
	u32 cpuid_1_eax;
	u32 cpuid_7_ebx;
	u32 cpuid_14_0[4];
	u32 cpuid_14_1[4];
	u32 cpuid_15[4];
	u8 physical_bits;
	u8 linear_bits;
	u8 nominal_ratio; /* of the TSC to 100 MHz, from PLATFORM_INFO; 0: unknown */
	bool address_masking; /* LAM: CR3 has bits that CR3_MATCH may or may not be compared with */
	bool in_vmx; /* Processor Trace works in VMX operation */
	bool interrupts; /* the interrupt of ToPA can be seen: a guest may have no PMU */
	bool bts; /* Branch Trace Store */
	bool bts_levels; /* Branch Trace Store of user code alone or of kernel code alone */
};

extern struct ptkit_caps ptkit_caps;

/* -ENODEV if a processor has no Processor Trace. */
int ptkit_read_caps(struct ptkit_caps *caps);
/* On a processor that came online later: whether CPUID has all of them there, too. */
bool ptkit_caps_hold(void);

#endif /* PTKIT_LINUX_CAPS_H */
