/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The processors: the real ones (machine.c), or a model of them in builds for tests. */
#ifndef PTKIT_WINDOWS_MACHINE_H
#define PTKIT_WINDOWS_MACHINE_H

#include <ntddk.h>

#include "common/pt_ops.h"

typedef void (*ptkit_function)(void *context);

struct ptkit_machine {
	void (*cpuid)(uint32_t leaf, uint32_t subleaf, uint32_t words[4]); /* EAX, EBX, ECX, EDX */
	struct pt_ops ops; /* access the registers of the processor that calls them */
	uint64_t (*ticks)(void); /* the time stamp counter, after all loads before */
	uint32_t (*tsc_khz)(void); /* 0: unknown. PASSIVE_LEVEL */
	uint32_t (*system_flags)(
		void); /* PTKIT_SYSTEM_HYPERVISOR, VBS, KVA_SHADOW. PASSIVE_LEVEL */

	/* Processors are numbered from 0, over all groups. */
	uint32_t (*cpu_count)(void); /* at most PTKIT_MOST_CPUS, and always the same */
	uint32_t (*cpu_here)(void); /* of the caller, which does not move */
	PROCESSOR_NUMBER (*cpu_number)(uint32_t cpu); /* its group, and its number there */

	/*
	 * Runs a function with interrupts off, and waits for it. While it runs, nothing else of the
	 * driver runs on that processor. call() is for PASSIVE_LEVEL, call_here() for DPCs.
	 */
	void (*call)(uint32_t cpu, ptkit_function function, void *context);
	void (*call_here)(ptkit_function function, void *context);

	/*
	 * From now on, each interrupt of performance monitoring calls `handler` on its processor,
	 * at HIGH_LEVEL, and never while a function of call() or call_here() runs there.
	 * PASSIVE_LEVEL, and in the context of the System process.
	 */
	NTSTATUS (*take_interrupts)(void (*handler)(void));
	void (*release_interrupts)(void); /* no handler runs any more afterwards */
	/* Delivery of the interrupt masks it. False: this machine cannot unmask it. */
	bool (*can_arm)(void);
	void (*arm_interrupt)(void); /* on this processor */

	/*
	 * Page tables of a process, bits 63:12 of CR3. Without KVA shadow both are the same. With
	 * it, `user` is 0 if it could not be found. PASSIVE_LEVEL.
	 */
	NTSTATUS (*page_tables)(HANDLE pid, uint64_t *kernel, uint64_t *user);
};

#define PTKIT_MOST_CPUS 2048

extern const struct ptkit_machine ptkit_machine;

#endif /* PTKIT_WINDOWS_MACHINE_H */
