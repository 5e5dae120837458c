/* SPDX-License-Identifier: MIT */
/* Functions of the shims for test builds of the driver, besides the calls that they replace. */
#ifndef PTKIT_TESTS_WINDOWS_SHIMS_H
#define PTKIT_TESTS_WINDOWS_SHIMS_H

#include <ntifs.h>
#include <stdbool.h>
#include <stdint.h>

#define SHIM_CPUS 4

/* Before DriverEntry(), and after the driver's unload. */
NTSTATUS shims_begin(void);
void shims_end(void);

/* Where a physical address is in the machine's memory; null: nowhere. */
void* shim_memory_at(uint64_t physical, uint64_t bytes);

/* Of what the driver has taken and not given back. */
struct shim_counts {
  uint32_t runs;     /* of memory */
  uint32_t mappings; /* of memory descriptor lists */
  uint32_t timers;   /* that are set */
  uint32_t routines; /* that are to be notified */
};
struct shim_counts shim_counts(void);

/* The next so many allocations succeed, then one fails; negative: none fails. */
void shim_fail_after(int32_t allocations);
bool shim_allocation_fails(void);
/* Whether a client has the privileges that it asks for. */
void shim_set_privileged(bool privileged);
/* The system tells the driver. */
void shim_notify_process(HANDLE parent, HANDLE pid, BOOLEAN begins);
void shim_notify_thread(HANDLE pid, HANDLE tid, BOOLEAN begins);
void shim_notify_image(PUNICODE_STRING path, HANDLE pid, PIMAGE_INFO info);
/* The driver is in the system's list of drivers until the end. */
void shim_add_driver(PUNICODE_STRING path, const IMAGE_INFO* info);
/* \Callback\PowerState: leaving S0, or having come back to it. */
void shim_notify_power(bool returns);

/* --- Shared by the files of shims --- */

/* Both the function, and what a call of an imported function reads. */
#define SHIM(name)                                          \
  __asm__(".globl " #name "\n.set " #name ", shim_" #name); \
  void* const __imp_##name = (void*)shim_##name

extern void* shim_lock; /* of all their data; never held while code of the driver runs */

/* memory_shims.c: false if there is no memory; counts runs and mappings, with the lock. */
bool shim_memory_begin(void);
void shim_count_memory(struct shim_counts* counts);

#endif /* PTKIT_TESTS_WINDOWS_SHIMS_H */
