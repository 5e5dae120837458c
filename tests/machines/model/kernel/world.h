/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/*
 * The other users of processor 0: a layer between the driver and the model. After each access of
 * the driver, and after each stretch of traced code, is an insertion point; one of them has the
 * accesses of a neighbour.
 */
#ifndef PTKIT_TESTS_MODEL_KERNEL_WORLD_H
#define PTKIT_TESTS_MODEL_KERNEL_WORLD_H

#include "model.h"

/* tests/machines/linux_driver/sweep_test.c has the same numbers. */
enum world_neighbour {
	WORLD_ALONE,
	WORLD_COUNTER, /* a counter of perf overflows */
	WORLD_PERF_TRACE, /* perf's intel_pt traces a task that runs once */
	WORLD_VMX, /* VMXON, and VMXOFF later */
	WORLD_FIRMWARE, /* leaves the bit of an interrupt */
	WORLD_CODE, /* none: the driver's own code is traced */
};

/* Traced code is executed: the unit writes so many bytes. */
void world_execute(unsigned int bytes);
/* Bytes that the unit writes because of the neighbour. */
unsigned int world_bytes_of_neighbour(void);

/* world_perf.c */
void world_overflow(void);
/* A PMI may come again when it is unmasked. */
void world_was_unmasked(void);

/* world_tracer.c; all of a task that runs once, for so many bytes. */
void world_run_task(unsigned int bytes);
/* Whether perf's intel_pt traces, and the driver does not. */
bool world_task_runs(void);
/* Of the unit's registers. */
bool world_task_owns(u64 base);

/* world_kvm.c */
void world_vmxon(void);
void world_vmxoff(void);

/*
 * model_pmu.c: perf's rules of an exclusive PMU. Events of a processor and of a task do not
 * coexist.
 */
bool model_pmu_add_task(void);
void model_pmu_remove_task(void);

#endif /* PTKIT_TESTS_MODEL_KERNEL_WORLD_H */
