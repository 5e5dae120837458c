/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The capabilities of the processor, as read when the module is loaded. */
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
	bool in_vmx; /* Processor Trace works in VMX operation */
	bool bts; /* Branch Trace Store */
	bool bts_levels; /* Branch Trace Store of user code alone or of kernel code alone */
};

extern struct ptkit_caps ptkit_caps;

/* -ENODEV without Processor Trace. Preemption is off. */
int ptkit_read_caps(struct ptkit_caps *caps);

#endif /* PTKIT_LINUX_CAPS_H */
