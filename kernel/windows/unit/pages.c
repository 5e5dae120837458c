// SPDX-License-Identifier: GPL-2.0 OR MIT
#include "unit/pages.h"

/* Debian's headers lack it. */
#ifndef MdlMappingNoExecute
#define MdlMappingNoExecute 0x40000000
#endif

static bool make_contiguous(struct ptkit_pages *pages)
{
	PHYSICAL_ADDRESS lowest = {.QuadPart = 0};
	PHYSICAL_ADDRESS highest = {.QuadPart = -1};
	PHYSICAL_ADDRESS boundary = {.QuadPart = (LONGLONG)pages->bytes};

	pages->linear = MmAllocateContiguousMemorySpecifyCache((SIZE_T)pages->bytes, lowest,
							       highest, boundary, MmCached);
	if (pages->linear)
		RtlZeroMemory(pages->linear, (SIZE_T)pages->bytes);
	return pages->linear;
}

static void free_mdl(struct ptkit_pages *pages)
{
	MmFreePagesFromMdl(pages->mdl);
	ExFreePool(pages->mdl); /* as MmFreePagesFromMdl() documents */
	pages->mdl = NULL;
}

/* The pages are zeroed. */
static bool make_scattered(struct ptkit_pages *pages)
{
	PHYSICAL_ADDRESS lowest = {.QuadPart = 0};
	PHYSICAL_ADDRESS highest = {.QuadPart = -1};

	pages->mdl =
		MmAllocatePagesForMdlEx(lowest, highest, lowest, (SIZE_T)pages->bytes, MmCached,
					MM_ALLOCATE_FULLY_REQUIRED | MM_ALLOCATE_PREFER_CONTIGUOUS);
	if (!pages->mdl)
		return false;
	if (MmGetMdlByteCount(pages->mdl) == pages->bytes)
		pages->linear =
			MmMapLockedPagesSpecifyCache(pages->mdl, KernelMode, MmCached, NULL, FALSE,
						     NormalPagePriority | MdlMappingNoExecute);
	if (!pages->linear)
		free_mdl(pages);
	return pages->linear;
}

bool ptkit_pages_make(struct ptkit_pages *pages, uint64_t bytes, bool contiguous)
{
	RtlZeroMemory(pages, sizeof(*pages));
	pages->bytes = bytes;
	return contiguous ? make_contiguous(pages) : make_scattered(pages);
}

void ptkit_pages_free(struct ptkit_pages *pages)
{
	if (!pages->linear)
		return;
	if (pages->mdl) {
		MmUnmapLockedPages(pages->linear, pages->mdl);
		free_mdl(pages);
	} else {
		MmFreeContiguousMemory(pages->linear);
	}
	pages->linear = NULL;
}

uint64_t ptkit_pages_physical(const struct ptkit_pages *pages, uint64_t page)
{
	if (pages->mdl)
		return (uint64_t)MmGetMdlPfnArray(pages->mdl)[page] << PAGE_SHIFT;
	return (uint64_t)MmGetPhysicalAddress(pages->linear).QuadPart + (page << PAGE_SHIFT);
}
