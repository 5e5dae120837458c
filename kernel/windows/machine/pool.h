/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Memory of the non-paged pool, zeroed. */
#ifndef PTKIT_WINDOWS_POOL_H
#define PTKIT_WINDOWS_POOL_H

#include <ntddk.h>

#define PTKIT_TAG 0x74696b70 /* "pkit" */

static inline void *ptkit_allocate(SIZE_T bytes)
{
	void *memory = ExAllocatePoolWithTag(NonPagedPoolNx, bytes, PTKIT_TAG);

	if (memory)
		RtlZeroMemory(memory, bytes);
	return memory;
}

static inline void ptkit_free(void *memory)
{
	if (memory)
		ExFreePoolWithTag(memory, PTKIT_TAG);
}

#endif /* PTKIT_WINDOWS_POOL_H */
