// SPDX-License-Identifier: GPL-2.0 OR MIT
#include "machine/caps.h"

#include "machine/machine.h"
#include "ptkit/ptkit_windows.h"
#include "ptkit/rtit_regs.h"

struct ptkit_machine_caps ptkit_machine_caps;

#define ADDRESS_LEAF 0x80000008U

static void read_here(void *context)
{
	struct ptkit_caps *caps = context;
	uint32_t words[4];

	pt_read_caps(ptkit_machine.cpuid, &ptkit_machine.ops, caps);
	ptkit_machine.cpuid(ADDRESS_LEAF, 0, words);
	caps->physical_bits = (uint8_t)words[0];
	caps->linear_bits = (uint8_t)(words[0] >> PT_CPUID_80000008_EAX_LINEAR_SHIFT);
}

/* A hypervisor hides Processor Trace from its guests, and Windows itself is one with VBS. */
static uint32_t why_not(const struct ptkit_machine_caps *all)
{
	if (all->caps.cpuid_7_ebx & PT_BIT(PT_CPUID_7_EBX_PT))
		return PTKIT_REASON_NONE;
	if (all->system & PTKIT_SYSTEM_VBS)
		return PTKIT_REASON_VBS;
	return all->system & PTKIT_SYSTEM_HYPERVISOR ? PTKIT_REASON_HYPERVISOR : PTKIT_REASON_NO_PT;
}

void ptkit_read_caps(void)
{
	struct ptkit_machine_caps *all = &ptkit_machine_caps;
	struct ptkit_caps one;
	uint32_t cpu;

	ptkit_machine.call(0, read_here, &all->caps);
	for (cpu = 1; cpu < ptkit_machine.cpu_count(); cpu++) {
		ptkit_machine.call(cpu, read_here, &one);
		pt_keep_common(&all->caps, &one);
	}
	all->tsc_khz = ptkit_machine.tsc_khz();
	all->system = ptkit_machine.system_flags();
	if (all->system & PTKIT_SYSTEM_KVA_SHADOW)
		all->caps.bts = false; /* the page tables of user code do not map the buffer */
	all->reason = why_not(all);
}
