// SPDX-License-Identifier: GPL-2.0 OR MIT
/* The registers and CPUID of the processor that executes this. */
#include <asm/apic.h>
#include <asm/barrier.h>
#include <asm/msr.h>
#include <asm/tsc.h>
#if __has_include("asm/cpuid/api.h")
#include <asm/cpuid/api.h>
#else
#include <asm/cpuid.h>
#endif

#include "machine/compat.h"
#include "machine/machine.h"

static void read_cpuid(u32 leaf, u32 subleaf, u32 words[4])
{
	words[0] = 0;
	words[1] = 0;
	words[2] = 0;
	words[3] = 0;
	if (leaf <= cpuid_eax(0))
		cpuid_count(leaf, subleaf, &words[0], &words[1], &words[2], &words[3]);
}

static int write_msr(void *ctx, u32 msr, u64 value)
{
	return ptkit_wrmsr_safe(msr, value);
}

static int read_msr(void *ctx, u32 msr, u64 *value)
{
	unsigned long long read = 0;
	int error = ptkit_rdmsr_safe(msr, &read);

	*value = read;
	return error;
}

static void barrier_msr(void *ctx)
{
	wmb(); /* readers see the trace unit's stores before the position */
}

/* The value that perf writes. Delivery of the interrupt sets the mask bit. */
static void arm_interrupt(void)
{
	apic->write(APIC_LVTPC, APIC_DM_NMI);
}

/* 100 us */
static u64 late_ticks(void)
{
	return tsc_khz / 10;
}

const struct ptkit_machine ptkit_machine = {
	.cpuid = read_cpuid,
	.arm_interrupt = arm_interrupt,
	.late_ticks = late_ticks,
	.ops = {
		.write = write_msr,
		.read = read_msr,
		.barrier = barrier_msr,
	},
};
