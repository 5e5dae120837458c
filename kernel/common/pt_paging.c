// SPDX-License-Identifier: MIT
#include "pt_paging.h"

#define ACCESSED 5
#define DIRTY 6
#define EXECUTE_DISABLE 63

/* The processor sets the first two in each table; the table of kernel code has the third one. */
#define COMPARED (~(PT_BIT(ACCESSED) | PT_BIT(DIRTY) | PT_BIT(EXECUTE_DISABLE)))

/*
 * Set in linear addresses of the kernel. Bit 63 may be set in a value of CR3: its write then keeps
 * the translations of the table.
 */
#define POINTER_BITS 0x7ff0000000000000ULL

static bool maps_the_same(const uint64_t *left, const uint64_t *right)
{
	uint64_t any = 0;
	uint32_t i;

	for (i = 0; i < PT_USER_ENTRIES; i++) {
		if ((left[i] ^ right[i]) & COMPARED)
			return false;
		any |= left[i];
	}
	return any;
}

uint64_t pt_find_user_table(const uint64_t *words, uint32_t count, uint64_t kernel,
			    pt_read_table_fn *read, void *ctx, uint64_t *scratch)
{
	uint64_t *candidate = scratch + PT_USER_ENTRIES;
	uint32_t i;

	if (!read(ctx, kernel, scratch))
		return 0;
	for (i = 0; i < count; i++) {
		uint64_t address = words[i] & PT_TABLE_ADDRESS;

		if (!address || address == kernel || (words[i] & POINTER_BITS))
			continue;
		if (read(ctx, address, candidate) && maps_the_same(scratch, candidate))
			return address;
	}
	return 0;
}
