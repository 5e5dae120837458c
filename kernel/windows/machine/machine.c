// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The registers, CPUID and interrupts of the processors. This file and tables.c have everything
 * that a user program cannot do; tests replace both.
 */
#include <ntddk.h>

#include <cpuid.h>
#include <intrin.h>

#include "machine/machine.h"
#include "machine/msr.h"
#include "machine/tables.h"
#include "ptkit/ptkit_windows.h"
#include "ptkit/rtit_regs.h"

#define APIC_BASE 0x1b
#define APIC_BASE_X2APIC 10
#define X2APIC_LVT_PC (0x800 + PT_APIC_LVT_PC / 16)
#define CPUID_1_ECX_HYPERVISOR 31
#define INTERRUPT_FLAG 0x200

/* Classes and structures of ZwQuerySystemInformation(). */
#define CODE_INTEGRITY_CLASS 103
#define CODE_INTEGRITY_HVCI 0x400

struct code_integrity {
	ULONG bytes;
	ULONG options;
};

NTSTATUS NTAPI ZwQuerySystemInformation(ULONG class, PVOID information, ULONG bytes,
					PULONG returned);

static void (*interrupt_handler)(void);

static void read_cpuid(uint32_t leaf, uint32_t subleaf, uint32_t words[4])
{
	RtlZeroMemory(words, 4 * sizeof(words[0]));
	if (leaf <= __get_cpuid_max(leaf & 0x80000000U, NULL))
		__cpuid_count(leaf, subleaf, words[0], words[1], words[2], words[3]);
}

static int write_msr(void *context, uint32_t msr, uint64_t value)
{
	UNREFERENCED_PARAMETER(context);
	return ptkit_write_msr(msr, value);
}

static int read_msr(void *context, uint32_t msr, uint64_t *value)
{
	UNREFERENCED_PARAMETER(context);
	*value = 0;
	return ptkit_read_msr(msr, value);
}

/* Readers see the trace unit's stores before the position. */
static void barrier(void *context)
{
	UNREFERENCED_PARAMETER(context);
	__builtin_ia32_sfence();
}

static uint64_t ticks(void)
{
	__builtin_ia32_lfence();
	return __rdtsc();
}

static uint32_t tsc_khz(void)
{
	LARGE_INTEGER pause = {.QuadPart = -20 * 10000LL};
	LARGE_INTEGER frequency;
	int64_t counts;
	uint64_t begin;

	counts = KeQueryPerformanceCounter(&frequency).QuadPart;
	begin = ticks();
	KeDelayExecutionThread(KernelMode, FALSE, &pause);
	counts = KeQueryPerformanceCounter(NULL).QuadPart - counts;
	if (counts <= 0)
		return 0;
	return (uint32_t)((ticks() - begin) * (uint64_t)frequency.QuadPart / (uint64_t)counts /
			  1000);
}

static uint32_t system_flags(void)
{
	struct code_integrity integrity = {.bytes = sizeof(integrity)};
	uint32_t words[4];
	uint32_t flags = 0;

	read_cpuid(1, 0, words);
	if (words[2] >> CPUID_1_ECX_HYPERVISOR & 1)
		flags |= PTKIT_SYSTEM_HYPERVISOR;
	if (NT_SUCCESS(ZwQuerySystemInformation(CODE_INTEGRITY_CLASS, &integrity, sizeof(integrity),
						NULL)) &&
	    (integrity.options & CODE_INTEGRITY_HVCI))
		flags |= PTKIT_SYSTEM_VBS;
	if (ptkit_has_kva_shadow())
		flags |= PTKIT_SYSTEM_KVA_SHADOW;
	return flags;
}

/* Those that are there when the driver is loaded. Windows takes none away. */
static uint32_t cpu_count(void)
{
	static ULONG count;

	if (!count)
		count = min(KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS), PTKIT_MOST_CPUS);
	return count;
}

static uint32_t cpu_here(void)
{
	return KeGetCurrentProcessorNumberEx(NULL);
}

static PROCESSOR_NUMBER cpu_number(uint32_t cpu)
{
	PROCESSOR_NUMBER number = {0};

	KeGetProcessorNumberFromIndex(cpu, &number);
	return number;
}

static void call_here(ptkit_function function, void *context)
{
	bool were_on = __readeflags() & INTERRUPT_FLAG;

	__asm__ volatile("cli" ::: "memory");
	function(context);
	if (were_on)
		__asm__ volatile("sti" ::: "memory");
}

static void call(uint32_t cpu, ptkit_function function, void *context)
{
	PROCESSOR_NUMBER number = cpu_number(cpu);
	GROUP_AFFINITY wanted = {
		.Group = number.Group,
		.Mask = (KAFFINITY)1 << number.Number,
	};
	GROUP_AFFINITY before;

	KeSetSystemGroupAffinityThread(&wanted, &before);
	call_here(function, context);
	KeRevertToUserGroupAffinityThread(&before);
}

/* The HAL calls it for each interrupt of performance monitoring, instead of its own handler. */
static VOID NTAPI on_interrupt(struct _KTRAP_FRAME *frame)
{
	UNREFERENCED_PARAMETER(frame);
	interrupt_handler();
}

static NTSTATUS set_handler(VOID(NTAPI *handler)(struct _KTRAP_FRAME *))
{
	return HalSetSystemInformation(HalProfileSourceInterruptHandler, sizeof(handler), &handler);
}

/* Refused if a driver of another process has set one. */
static NTSTATUS take_interrupts(void (*handler)(void))
{
	interrupt_handler = handler;
	return set_handler(on_interrupt);
}

static void do_nothing(void *context)
{
	UNREFERENCED_PARAMETER(context);
}

static void release_interrupts(void)
{
	uint32_t cpu;

	set_handler(NULL);
	/* A handler that has begun keeps its processor from this. */
	for (cpu = 0; cpu < cpu_count(); cpu++)
		call(cpu, do_nothing, NULL);
}

/* Only in x2APIC mode is the local APIC reached without a mapping of its registers. */
static bool can_arm(void)
{
	uint64_t base;

	return !ptkit_read_msr(APIC_BASE, &base) && (base >> APIC_BASE_X2APIC & 1);
}

/* Keeps the vector that the HAL has set. */
static void arm_interrupt(void)
{
	uint64_t entry;

	if (can_arm() && !ptkit_read_msr(X2APIC_LVT_PC, &entry))
		ptkit_write_msr(X2APIC_LVT_PC, entry & ~PT_BIT(PT_APIC_LVT_MASK));
}

const struct ptkit_machine ptkit_machine = {
	.cpuid = read_cpuid,
	.ops =
		{
			.write = write_msr,
			.read = read_msr,
			.barrier = barrier,
		},
	.ticks = ticks,
	.tsc_khz = tsc_khz,
	.system_flags = system_flags,
	.cpu_count = cpu_count,
	.cpu_here = cpu_here,
	.cpu_number = cpu_number,
	.call = call,
	.call_here = call_here,
	.take_interrupts = take_interrupts,
	.release_interrupts = release_interrupts,
	.can_arm = can_arm,
	.arm_interrupt = arm_interrupt,
	.page_tables = ptkit_page_tables,
};
