// SPDX-License-Identifier: GPL-2.0 OR MIT
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bits.h>
#include <linux/cpu.h>
#include <linux/cpufeature.h>
#include <linux/errno.h>
#include <linux/printk.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "machine/caps.h"
#include "machine/machine.h"
#include "ptkit/rtit_regs.h"

struct ptkit_caps ptkit_caps;

/* Under page-table isolation user code does not see the buffer of Branch Trace Store (bts.c). */
static void read_here(void *argument)
{
	struct ptkit_caps *caps = argument;

	pt_read_caps(ptkit_machine.cpuid, &ptkit_machine.ops, caps);
	caps->physical_bits = boot_cpu_data.x86_phys_bits;
	caps->linear_bits = boot_cpu_data.x86_virt_bits;
	if (boot_cpu_has(X86_FEATURE_PTI))
		caps->bts = false;
}

int ptkit_read_caps(struct ptkit_caps *caps)
{
	struct ptkit_caps one;
	unsigned int cpu;

	cpus_read_lock();
	smp_call_function_single(cpumask_first(cpu_online_mask), read_here, caps, 1);
	for_each_online_cpu(cpu)
	{
		smp_call_function_single(cpu, read_here, &one, 1);
		pt_keep_common(caps, &one);
	}
	cpus_read_unlock();
	if (caps->cpuid_7_ebx & BIT(PT_CPUID_7_EBX_PT))
		return 0;
	pr_err("no Intel Processor Trace: CPUID 7H EBX is %#010x, bit %u is clear\n",
	       caps->cpuid_7_ebx, PT_CPUID_7_EBX_PT);
	return -ENODEV;
}

bool ptkit_caps_hold(void)
{
	struct ptkit_caps common = ptkit_caps;
	struct ptkit_caps here;

	pt_read_words(ptkit_machine.cpuid, &here);
	pt_keep_common_words(&common, &here);
	return !memcmp(&common, &ptkit_caps, sizeof(common));
}
