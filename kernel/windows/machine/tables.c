// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * CR3 of a process. In the context of the process, kernel code reads the one of kernel code.
 * Windows keeps that of user code in the process object, at an offset that differs between
 * versions: it is found by what it is.
 */
#include <ntifs.h>

#include <intrin.h>

#include "common/pt_paging.h"
#include "machine/pool.h"
#include "machine/tables.h"

#define SEARCHED_BYTES 0x480 /* of the process object; KPROCESS is smaller in all versions */

#define KVA_SHADOW_CLASS 196
#define KVA_SHADOW_ENABLED 1

NTSTATUS NTAPI ZwQuerySystemInformation(ULONG class, PVOID information, ULONG bytes,
					PULONG returned);

/* Debian's headers lack it. By value: a union of an address of either kind. */
typedef NTSTATUS(NTAPI *copy_memory)(PVOID to, PHYSICAL_ADDRESS from, SIZE_T bytes, ULONG flags,
				     PSIZE_T copied);
#define COPY_PHYSICAL 1

bool ptkit_has_kva_shadow(void)
{
	ULONG flags = 0;

	return NT_SUCCESS(
		       ZwQuerySystemInformation(KVA_SHADOW_CLASS, &flags, sizeof(flags), NULL)) &&
	       (flags & KVA_SHADOW_ENABLED);
}

static uint64_t read_cr3_of(PEPROCESS process)
{
	KAPC_STATE state;
	uint64_t value;

	KeStackAttachProcess((PKPROCESS)process, &state);
	value = __readcr3();
	KeUnstackDetachProcess(&state);
	return value & PT_TABLE_ADDRESS;
}

static bool read_table(void *context, uint64_t address, uint64_t *entries)
{
	const copy_memory *copy = context;
	PHYSICAL_ADDRESS from = {.QuadPart = (LONGLONG)address};
	SIZE_T copied = 0;
	SIZE_T bytes = PT_USER_ENTRIES * sizeof(*entries);

	return NT_SUCCESS((*copy)(entries, from, bytes, COPY_PHYSICAL, &copied)) && copied == bytes;
}

static uint64_t search_user_table(PEPROCESS process, uint64_t kernel)
{
	UNICODE_STRING name = RTL_CONSTANT_STRING(L"MmCopyMemory");
	copy_memory copy = (copy_memory)(ULONG_PTR)MmGetSystemRoutineAddress(&name);
	uint64_t *tables;
	uint64_t found;

	if (!copy)
		return 0;
	tables = ptkit_allocate(2 * PT_USER_ENTRIES * sizeof(*tables));
	if (!tables)
		return 0;
	found = pt_find_user_table((const uint64_t *)process, SEARCHED_BYTES / sizeof(uint64_t),
				   kernel, read_table, &copy, tables);
	ptkit_free(tables);
	return found;
}

NTSTATUS ptkit_page_tables(HANDLE pid, uint64_t *kernel, uint64_t *user)
{
	PEPROCESS process;
	NTSTATUS status = PsLookupProcessByProcessId(pid, &process);

	if (!NT_SUCCESS(status))
		return status;
	*kernel = read_cr3_of(process);
	*user = ptkit_has_kva_shadow() ? search_user_table(process, *kernel) : *kernel;
	ObDereferenceObject(process);
	return STATUS_SUCCESS;
}
