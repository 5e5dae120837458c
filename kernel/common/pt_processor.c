// SPDX-License-Identifier: MIT
#include "pt_processor.h"

#include "ptkit/rtit_regs.h"

static bool has(uint32_t word, uint32_t bit)
{
	return (word >> bit) & 1;
}

/* Without VMX no hypervisor can run; PTKIT_FEATURE_VMX says only what the register says. */
static bool traces_in_vmx(const struct pt_ops *ops, const uint32_t cpuid_1[4])
{
	uint64_t misc;

	if (!has(cpuid_1[2], PT_CPUID_1_ECX_VMX) || ops->read(ops->ctx, PT_MSR_VMX_MISC, &misc))
		return false;
	return misc & PT_BIT(PT_VMX_MISC_PT_IN_VMX);
}

static void read_bts_caps(const struct pt_ops *ops, struct ptkit_caps *caps,
			  const uint32_t cpuid_1[4])
{
	uint64_t enable;

	if (!has(cpuid_1[3], PT_CPUID_1_EDX_DS) || !has(cpuid_1[2], PT_CPUID_1_ECX_DTES64) ||
	    ops->read(ops->ctx, PT_MSR_MISC_ENABLE, &enable))
		return;
	caps->bts = !(enable & PT_BIT(PT_MISC_ENABLE_BTS_UNAVAILABLE));
	caps->bts_levels = has(cpuid_1[2], PT_CPUID_1_ECX_DS_CPL);
}

static bool masks_addresses(pt_cpuid_fn *cpuid)
{
	uint32_t words[4];

	cpuid(7, 0, words);
	if (!words[0]) /* subleaves */
		return false;
	cpuid(7, 1, words);
	return has(words[0], PT_CPUID_7_1_EAX_LAM);
}

static uint8_t read_nominal_ratio(const struct pt_ops *ops)
{
	uint64_t info;

	if (ops->read(ops->ctx, PT_MSR_PLATFORM_INFO, &info))
		return 0;
	return (uint8_t)(info >> PT_PLATFORM_INFO_MAX_NON_TURBO_SHIFT);
}

void pt_read_words(pt_cpuid_fn *cpuid, struct ptkit_caps *caps)
{
	const struct ptkit_caps none = {0};
	uint32_t words[4];

	*caps = none;
	cpuid(7, 0, words);
	caps->cpuid_7_ebx = words[1];
	cpuid(0x14, 0, caps->cpuid_14_0);
	if (caps->cpuid_14_0[0])
		cpuid(0x14, 1, caps->cpuid_14_1);
}

void pt_read_caps(pt_cpuid_fn *cpuid, const struct pt_ops *ops, struct ptkit_caps *caps)
{
	uint32_t words[4];
	uint64_t status;

	pt_read_words(cpuid, caps);
	cpuid(1, 0, words);
	caps->cpuid_1_eax = words[0];
	caps->in_vmx = traces_in_vmx(ops, words);
	caps->address_masking = masks_addresses(cpuid);
	read_bts_caps(ops, caps, words);
	cpuid(0x15, 0, caps->cpuid_15);
	caps->nominal_ratio = read_nominal_ratio(ops);
	caps->interrupts = !ops->read(ops->ctx, PT_MSR_PERF_GLOBAL_STATUS, &status);
}

void pt_keep_common_words(struct ptkit_caps *caps, const struct ptkit_caps *other)
{
	const uint32_t mask = (1U << PT_CPUID_14_1_EAX_RANGES_WIDTH) - 1;
	uint32_t mine = caps->cpuid_14_1[0] & mask;
	uint32_t others = other->cpuid_14_1[0] & mask;

	caps->cpuid_7_ebx &= other->cpuid_7_ebx;
	caps->cpuid_14_0[1] &= other->cpuid_14_0[1];
	caps->cpuid_14_0[2] &= other->cpuid_14_0[2];
	caps->cpuid_14_1[0] &= other->cpuid_14_1[0] & ~mask;
	caps->cpuid_14_1[0] |= mine < others ? mine : others;
	caps->cpuid_14_1[1] &= other->cpuid_14_1[1];
}

void pt_keep_common(struct ptkit_caps *caps, const struct ptkit_caps *other)
{
	pt_keep_common_words(caps, other);
	caps->in_vmx = caps->in_vmx && other->in_vmx;
	caps->interrupts = caps->interrupts && other->interrupts;
	caps->bts = caps->bts && other->bts;
	caps->bts_levels = caps->bts_levels && other->bts_levels;
}
