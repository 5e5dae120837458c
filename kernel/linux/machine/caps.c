// SPDX-License-Identifier: GPL-2.0 OR MIT
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/bits.h>
#include <linux/cpufeature.h>
#include <linux/errno.h>
#include <linux/printk.h>

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

int ptkit_read_caps(struct ptkit_caps *caps)
{
	u32 words[4];

	ptkit_machine.cpuid(1, 0, words);
	caps->cpuid_1_eax = words[0];
	caps->in_vmx = traces_in_vmx(words);
	read_bts_caps(caps, words);
	ptkit_machine.cpuid(7, 0, words);
	caps->cpuid_7_ebx = words[1];
	if (!(caps->cpuid_7_ebx & BIT(PT_CPUID_7_EBX_PT))) {
		pr_err("no Intel Processor Trace here: CPUID 7H EBX is %#010x, bit %u is clear\n",
		       caps->cpuid_7_ebx, PT_CPUID_7_EBX_PT);
		return -ENODEV;
	}
	ptkit_machine.cpuid(0x14, 0, caps->cpuid_14_0);
	if (caps->cpuid_14_0[0])
		ptkit_machine.cpuid(0x14, 1, caps->cpuid_14_1);
	ptkit_machine.cpuid(0x15, 0, caps->cpuid_15);
	caps->physical_bits = boot_cpu_data.x86_phys_bits;
	caps->linear_bits = boot_cpu_data.x86_virt_bits;
	return 0;
}
