/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The processor: the real one (machine.c), or a model of it in builds for tests. */
#ifndef PTKIT_LINUX_MACHINE_H
#define PTKIT_LINUX_MACHINE_H

#include <linux/types.h>

#include "common/pt_ops.h"

struct ptkit_machine {
	void (*cpuid)(u32 leaf, u32 subleaf, u32 words[4]); /* EAX, EBX, ECX, EDX */
	struct pt_ops ops; /* access the registers of the processor that calls them */
	/* Unmasks the interrupt of performance monitoring. Each delivery masks it. */
	void (*arm_interrupt)(void);
	/* TSC ticks that an interrupt takes at most from its cause to its delivery. */
	u64 (*late_ticks)(void);
};

extern const struct ptkit_machine ptkit_machine;

#endif /* PTKIT_LINUX_MACHINE_H */
