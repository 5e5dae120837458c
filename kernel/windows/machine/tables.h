/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Page tables of processes. */
#ifndef PTKIT_WINDOWS_TABLES_H
#define PTKIT_WINDOWS_TABLES_H

#include <ntddk.h>

#include <stdbool.h>
#include <stdint.h>

/* Whether user code runs with page tables that lack the kernel. */
bool ptkit_has_kva_shadow(void);
/* See struct ptkit_machine. */
NTSTATUS ptkit_page_tables(HANDLE pid, uint64_t *kernel, uint64_t *user);

#endif /* PTKIT_WINDOWS_TABLES_H */
