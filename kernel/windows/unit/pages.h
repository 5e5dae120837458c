/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Pages of physical memory, zeroed, and mapped one after the other. */
#ifndef PTKIT_WINDOWS_PAGES_H
#define PTKIT_WINDOWS_PAGES_H

#include <ntddk.h>

#include <stdbool.h>
#include <stdint.h>

struct ptkit_pages {
	uint64_t bytes;
	void *linear; /* null: there are none */
	PMDL mdl; /* null: the memory is contiguous */
};

/* `contiguous`: one range, aligned to its size, which is a power of two. */
bool ptkit_pages_make(struct ptkit_pages *pages, uint64_t bytes, bool contiguous);
void ptkit_pages_free(struct ptkit_pages *pages);
/* The physical address of a page. */
uint64_t ptkit_pages_physical(const struct ptkit_pages *pages, uint64_t page);

#endif /* PTKIT_WINDOWS_PAGES_H */
