// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * CR3 of a process. In the context of the process, kernel code reads the one of kernel code.
 * Windows keeps that of user code in the process object, at an offset that differs between
 * versions. It is found by what it is: a table of the highest level that maps the same user memory
 * as the other one. KVA shadow sets execute-disable in the entries of the other one.
 */
#include <ntifs.h>

#include <intrin.h>

#include "machine/pool.h"
#include "machine/tables.h"

#define TABLE_ADDRESS 0x000ffffffffff000ULL
/* Accessed, dirty and execute-disable may differ. */
#define COMPARED (~(1ULL << 63 | 1ULL << 5 | 1ULL << 6))
#define USER_ENTRIES 256
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
	return value & TABLE_ADDRESS;
}

static bool read_table(copy_memory copy, uint64_t address, uint64_t *entries)
{
	PHYSICAL_ADDRESS from = {.QuadPart = (LONGLONG)address};
	SIZE_T copied = 0;
	SIZE_T bytes = USER_ENTRIES * sizeof(*entries);

	return NT_SUCCESS(copy(entries, from, bytes, COPY_PHYSICAL, &copied)) && copied == bytes;
}

static bool maps_the_same(const uint64_t *left, const uint64_t *right)
{
	uint64_t any = 0;
	unsigned int i;

	for (i = 0; i < USER_ENTRIES; i++) {
		if ((left[i] ^ right[i]) & COMPARED)
			return false;
		any |= left[i];
	}
	return any;
}

static uint64_t find_user_table(const uint64_t *words, uint64_t kernel, copy_memory copy,
				uint64_t *tables)
{
	uint64_t *candidate = tables + USER_ENTRIES;
	unsigned int i;

	if (!read_table(copy, kernel, tables))
		return 0;
	for (i = 0; i < SEARCHED_BYTES / sizeof(*words); i++) {
		uint64_t address = words[i] & TABLE_ADDRESS;

		/* Not a linear address of the kernel: these have the upper bits set. */
		if (!address || address == kernel || (words[i] & ~TABLE_ADDRESS) >> 52)
			continue;
		if (read_table(copy, address, candidate) && maps_the_same(tables, candidate))
			return address;
	}
	return 0;
}

static uint64_t search_user_table(PEPROCESS process, uint64_t kernel)
{
	UNICODE_STRING name = RTL_CONSTANT_STRING(L"MmCopyMemory");
	copy_memory copy = (copy_memory)(ULONG_PTR)MmGetSystemRoutineAddress(&name);
	uint64_t *tables;
	uint64_t found;

	if (!copy)
		return 0;
	tables = ptkit_allocate(2 * USER_ENTRIES * sizeof(*tables));
	if (!tables)
		return 0;
	found = find_user_table((const uint64_t *)process, kernel, copy, tables);
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
