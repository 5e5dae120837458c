/* SPDX-License-Identifier: MIT */
/*
 * The second page table of a process where user code has one of its own (KVA shadow of Windows,
 * page-table isolation of Linux): it maps the same user memory as the first one, and hardly any of
 * the kernel's. Intel SDM vol. 3, chapter "Paging", sections "4-Level Paging" and "5-Level Paging".
 */
#ifndef PTKIT_COMMON_PT_PAGING_H
#define PTKIT_COMMON_PT_PAGING_H

#include "pt_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of the table of the highest level, for the lower half of all addresses. */
#define PT_USER_ENTRIES 256
#define PT_TABLE_ADDRESS 0x000ffffffffff000ULL /* in CR3 and in entries */

/* Reads the user entries of the table at a physical address. False: there is no memory. */
typedef bool pt_read_table_fn(void *ctx, uint64_t address, uint64_t *entries);

/*
 * Looks among words for CR3 of user code; `kernel` is CR3 of kernel code. `scratch` has room for
 * twice the user entries. 0: none of the words is it.
 */
uint64_t pt_find_user_table(const uint64_t *words, uint32_t count, uint64_t kernel,
			    pt_read_table_fn *read, void *ctx, uint64_t *scratch);

#ifdef __cplusplus
}
#endif

#endif /* PTKIT_COMMON_PT_PAGING_H */
