// SPDX-License-Identifier: GPL-2.0 OR MIT
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bits.h>
#include <linux/cpu.h>
#include <linux/cpufeature.h>
#include <linux/errno.h>
#include <linux/minmax.h>
#include <linux/printk.h>
#include <linux/smp.h>
#include <linux/string.h>

#include "machine/caps.h"
#include "machine/machine.h"
#include "ptkit/rtit_regs.h"

struct ptkit_caps ptkit_caps;

/* Without VMX no hypervisor can run; PTKIT_FEATURE_VMX says only what the register says. */
static bool traces_in_vmx(const u32 cpuid_1[4])
{
	u64 misc;

	if (!(cpuid_1[2] & BIT(PT_CPUID_1_ECX_VMX)))
		return false;
	if (ptkit_machine.ops.read(ptkit_machine.ops.ctx, PT_MSR_VMX_MISC, &misc))
		return false;
	return misc & BIT(PT_VMX_MISC_PT_IN_VMX);
}

/* User code must see the buffer's addresses. Under page-table isolation it does not (bts.c). */
static void read_bts_caps(struct ptkit_caps *caps, const u32 cpuid_1[4])
{
	const struct pt_ops *ops = &ptkit_machine.ops;
	u64 enable;

	if (!(cpuid_1[3] & BIT(PT_CPUID_1_EDX_DS)) || !(cpuid_1[2] & BIT(PT_CPUID_1_ECX_DTES64)))
		return;
	if (boot_cpu_has(X86_FEATURE_PTI))
		return;
	if (ops->read(ops->ctx, PT_MSR_MISC_ENABLE, &enable))
		return;
	caps->bts = !(enable & BIT(PT_MISC_ENABLE_BTS_UNAVAILABLE));
	caps->bts_levels = cpuid_1[2] & BIT(PT_CPUID_1_ECX_DS_CPL);
}

static bool masks_addresses(void)
{
	u32 words[4];

	ptkit_machine.cpuid(7, 0, words);
	if (!words[0]) /* subleaves */
		return false;
	ptkit_machine.cpuid(7, 1, words);
	return words[0] & BIT(PT_CPUID_7_1_EAX_LAM);
}

static u8 read_nominal_ratio(void)
{
	u64 info;

	if (ptkit_machine.ops.read(ptkit_machine.ops.ctx, PT_MSR_PLATFORM_INFO, &info))
		return 0;
	return info >> PT_PLATFORM_INFO_MAX_NON_TURBO_SHIFT;
}

static void read_cpuid(struct ptkit_caps *caps)
{
	u32 words[4];

	memset(caps, 0, sizeof(*caps));
	ptkit_machine.cpuid(7, 0, words);
	caps->cpuid_7_ebx = words[1];
	ptkit_machine.cpuid(0x14, 0, caps->cpuid_14_0);
	if (caps->cpuid_14_0[0])
		ptkit_machine.cpuid(0x14, 1, caps->cpuid_14_1);
}

static void read_here(void *argument)
{
	struct ptkit_caps *caps = argument;
	u32 words[4];
	u64 status;

	read_cpuid(caps);
	ptkit_machine.cpuid(1, 0, words);
	caps->cpuid_1_eax = words[0];
	caps->in_vmx = traces_in_vmx(words);
	caps->address_masking = masks_addresses();
	read_bts_caps(caps, words);
	ptkit_machine.cpuid(0x15, 0, caps->cpuid_15);
	caps->physical_bits = boot_cpu_data.x86_phys_bits;
	caps->linear_bits = boot_cpu_data.x86_virt_bits;
	caps->nominal_ratio = read_nominal_ratio();
	caps->interrupts = !ptkit_machine.ops.read(ptkit_machine.ops.ctx, PT_MSR_PERF_GLOBAL_STATUS,
						   &status);
}

/* Hybrid processors: what one kind of core lacks, is used on none. */
static void keep_common_words(struct ptkit_caps *caps, const struct ptkit_caps *other)
{
	const u32 ranges = GENMASK(PT_CPUID_14_1_EAX_RANGES_WIDTH - 1, 0);

	caps->cpuid_7_ebx &= other->cpuid_7_ebx;
	caps->cpuid_14_0[1] &= other->cpuid_14_0[1];
	caps->cpuid_14_0[2] &= other->cpuid_14_0[2];
	caps->cpuid_14_1[0] = (caps->cpuid_14_1[0] & other->cpuid_14_1[0] & ~ranges) |
			      min(caps->cpuid_14_1[0] & ranges, other->cpuid_14_1[0] & ranges);
	caps->cpuid_14_1[1] &= other->cpuid_14_1[1];
}

static void keep_common(struct ptkit_caps *caps, const struct ptkit_caps *other)
{
	keep_common_words(caps, other);
	caps->in_vmx &= other->in_vmx;
	caps->interrupts &= other->interrupts;
	caps->bts &= other->bts;
	caps->bts_levels &= other->bts_levels;
}

int ptkit_read_caps(struct ptkit_caps *caps)
{
	struct ptkit_caps one;
	unsigned int cpu;

	cpus_read_lock();
	smp_call_function_single(cpumask_first(cpu_online_mask), read_here, caps, 1);
	for_each_online_cpu(cpu) {
		smp_call_function_single(cpu, read_here, &one, 1);
		keep_common(caps, &one);
	}
	cpus_read_unlock();
	if (caps->cpuid_7_ebx & BIT(PT_CPUID_7_EBX_PT))
		return 0;
	pr_err("no Intel Processor Trace here: CPUID 7H EBX is %#010x, bit %u is clear\n",
	       caps->cpuid_7_ebx, PT_CPUID_7_EBX_PT);
	return -ENODEV;
}

bool ptkit_caps_hold(void)
{
	struct ptkit_caps common = ptkit_caps;
	struct ptkit_caps here;

	read_cpuid(&here);
	keep_common_words(&common, &here);
	return !memcmp(&common, &ptkit_caps, sizeof(common));
}
