// SPDX-License-Identifier: MIT
/* Shims (shims.c) of physical memory: pages, contiguous memory, and mappings of memory descriptor lists. */
#include "host.h"
#include "shims.h"

#define SHIM_TAG 0x6d696873 /* of the pool */
#define MEMORY_BYTES (256ULL << 20)
#define MEMORY_BASE (1ULL << 32) /* the physical address of its first byte */
#define RUNS (MEMORY_BYTES / HOST_RUN_BYTES)
#define PAGES_OF_RUN (HOST_RUN_BYTES / HOST_PAGE_BYTES)
#define MOST_MAPPINGS 256

static uint8_t* memory;
static bool run_is_used[RUNS];
static uint32_t random_state = 1;

static struct mapping {
  uint8_t* address;
  uint64_t bytes;
  PMDL mdl;
} mappings[MOST_MAPPINGS];

static uint32_t next_random(void) {
  random_state = random_state * 1664525 + 1013904223;
  return random_state >> 8;
}

static void use_run(uint32_t run, bool used) {
  run_is_used[run] = used;
  host_forbid(memory + run * HOST_RUN_BYTES, HOST_RUN_BYTES, !used);
}

/* Free runs in a row, of which the first is a multiple of `align` runs; RUNS: there are none. */
static uint32_t find_runs(uint32_t count, uint32_t align) {
  uint32_t begin = next_random() % RUNS / align * align;
  for (uint32_t tried = 0; tried < RUNS; tried += align) {
    uint32_t first = (begin + tried) % (uint32_t)RUNS;
    uint32_t i = 0;
    while (i < count && first + i < RUNS && !run_is_used[first + i]) i++;
    if (i == count) return first;
  }
  return RUNS;
}

void* shim_memory_at(uint64_t physical, uint64_t bytes) {
  if (physical < MEMORY_BASE || physical - MEMORY_BASE > MEMORY_BYTES - bytes) return NULL;
  return memory + (physical - MEMORY_BASE);
}

/*
 * MmAllocatePagesForMdlEx, absent in Wine 8.0 (MmAllocatePagesForMdl is a stub). Pages anywhere in physical
 * memory, zeroed unless MM_DONT_ZERO_ALLOCATION is given, not mapped. Fewer than asked for unless
 * MM_ALLOCATE_FULLY_REQUIRED is given; null if there are none.
 */
static uint32_t take_runs(PPFN_NUMBER pages, uint32_t count) {
  uint32_t done = 0;
  while (done < count) {
    uint32_t run = find_runs(1, 1);
    if (run == RUNS) break;
    use_run(run, true);
    RtlZeroMemory(memory + run * HOST_RUN_BYTES, HOST_RUN_BYTES);
    for (uint32_t i = 0; i < PAGES_OF_RUN && done < count; i++, done++)
      pages[done] = (MEMORY_BASE + run * HOST_RUN_BYTES) / HOST_PAGE_BYTES + i;
  }
  return done;
}

static uint32_t run_of_page(PFN_NUMBER page) {
  return (uint32_t)((page * HOST_PAGE_BYTES - MEMORY_BASE) / HOST_RUN_BYTES);
}

static void give_runs(const PFN_NUMBER* pages, uint32_t count) {
  for (uint32_t i = 0; i < count; i += PAGES_OF_RUN) use_run(run_of_page(pages[i]), false);
}

PMDL NTAPI shim_MmAllocatePagesForMdlEx(PHYSICAL_ADDRESS low, PHYSICAL_ADDRESS high, PHYSICAL_ADDRESS skip,
                                        SIZE_T bytes, MEMORY_CACHING_TYPE cache, ULONG flags);
PMDL NTAPI shim_MmAllocatePagesForMdlEx(PHYSICAL_ADDRESS low, PHYSICAL_ADDRESS high, PHYSICAL_ADDRESS skip,
                                        SIZE_T bytes, MEMORY_CACHING_TYPE cache, ULONG flags) {
  uint32_t count = (uint32_t)((bytes + HOST_PAGE_BYTES - 1) / HOST_PAGE_BYTES);
  UNREFERENCED_PARAMETER(low);
  UNREFERENCED_PARAMETER(high);
  UNREFERENCED_PARAMETER(skip);
  UNREFERENCED_PARAMETER(cache);
  if (bytes == 0 || bytes > 0xffffffff - HOST_PAGE_BYTES || shim_allocation_fails()) return NULL;
  PMDL mdl = ExAllocatePoolWithTag(NonPagedPool, sizeof(*mdl) + count * sizeof(PFN_NUMBER), SHIM_TAG);
  if (mdl == NULL) return NULL;
  RtlZeroMemory(mdl, sizeof(*mdl));
  host_take(shim_lock);
  uint32_t done = take_runs(MmGetMdlPfnArray(mdl), count);
  bool refused = done == 0 || (done < count && (flags & MM_ALLOCATE_FULLY_REQUIRED));
  if (refused) give_runs(MmGetMdlPfnArray(mdl), done);
  host_release(shim_lock);
  if (refused) {
    ExFreePoolWithTag(mdl, SHIM_TAG);
    return NULL;
  }
  mdl->Size = (CSHORT)(sizeof(*mdl) + count * sizeof(PFN_NUMBER));
  mdl->MdlFlags = MDL_PAGES_LOCKED;
  mdl->ByteCount = (ULONG)(done * HOST_PAGE_BYTES);
  return mdl;
}
SHIM(MmAllocatePagesForMdlEx);

/* MmFreePagesFromMdl, a stub in Wine 8.0. The list itself is freed by ExFreePool(). */
void NTAPI shim_MmFreePagesFromMdl(PMDL mdl);
void NTAPI shim_MmFreePagesFromMdl(PMDL mdl) {
  host_take(shim_lock);
  give_runs(MmGetMdlPfnArray(mdl), (uint32_t)(mdl->ByteCount / HOST_PAGE_BYTES));
  host_release(shim_lock);
  mdl->ByteCount = 0;
}
SHIM(MmFreePagesFromMdl);

static void* map_runs_of(PMDL mdl, uint32_t count) {
  uint64_t* offsets = host_allocate(count * sizeof(*offsets));
  if (offsets == NULL) return NULL;
  for (uint32_t i = 0; i < count; i++)
    offsets[i] = run_of_page(MmGetMdlPfnArray(mdl)[i * PAGES_OF_RUN]) * HOST_RUN_BYTES;
  void* address = host_map(offsets, count);
  host_free(offsets);
  return address;
}

static struct mapping* mapping_of(PMDL mdl) {
  struct mapping* found = mappings;
  while (found < mappings + MOST_MAPPINGS && found->mdl != mdl) found++;
  return found == mappings + MOST_MAPPINGS ? NULL : found;
}

static uint32_t runs_of(PMDL mdl) {
  return (uint32_t)((mdl->ByteCount + HOST_RUN_BYTES - 1) / HOST_RUN_BYTES);
}

/*
 * MmMapLockedPagesSpecifyCache, which returns null in Wine 8.0. All pages of the list at kernel addresses in
 * a row. A list of Wine's own, as it has one for METHOD_OUT_DIRECT, has them already.
 */
PVOID NTAPI shim_MmMapLockedPagesSpecifyCache(PMDL mdl, KPROCESSOR_MODE mode, MEMORY_CACHING_TYPE cache,
                                              PVOID base, ULONG stop, ULONG priority);
PVOID NTAPI shim_MmMapLockedPagesSpecifyCache(PMDL mdl, KPROCESSOR_MODE mode, MEMORY_CACHING_TYPE cache,
                                              PVOID base, ULONG stop, ULONG priority) {
  UNREFERENCED_PARAMETER(cache);
  UNREFERENCED_PARAMETER(base);
  UNREFERENCED_PARAMETER(stop);
  UNREFERENCED_PARAMETER(priority);
  if (mode != KernelMode || shim_allocation_fails()) return NULL;
  if (mdl->StartVa != NULL) return (uint8_t*)mdl->StartVa + mdl->ByteOffset;
  host_take(shim_lock);
  struct mapping* mapping = mapping_of(NULL);
  void* address = mapping == NULL ? NULL : map_runs_of(mdl, runs_of(mdl));
  if (address != NULL) *mapping = (struct mapping){address, mdl->ByteCount, mdl};
  host_release(shim_lock);
  if (address == NULL) return NULL;
  host_forbid((uint8_t*)address + mdl->ByteCount, runs_of(mdl) * HOST_RUN_BYTES - mdl->ByteCount, true);
  mdl->MappedSystemVa = address;
  mdl->MdlFlags |= MDL_MAPPED_TO_SYSTEM_VA;
  return address;
}
SHIM(MmMapLockedPagesSpecifyCache);

/* MmUnmapLockedPages, without an effect in Wine 8.0. */
void NTAPI shim_MmUnmapLockedPages(PVOID base, PMDL mdl);
void NTAPI shim_MmUnmapLockedPages(PVOID base, PMDL mdl) {
  host_take(shim_lock);
  struct mapping* mapping = mapping_of(mdl);
  if (mapping != NULL && mapping->address == base) {
    host_forbid(base, runs_of(mdl) * HOST_RUN_BYTES, false);
    host_unmap(base, runs_of(mdl));
    *mapping = (struct mapping){0};
    mdl->MdlFlags &= ~MDL_MAPPED_TO_SYSTEM_VA;
  }
  host_release(shim_lock);
}
SHIM(MmUnmapLockedPages);

/*
 * MmAllocateContiguousMemorySpecifyCache, which returns null in Wine 8.0. Contiguous, aligned to a page, and
 * not across a multiple of `boundary` unless that is 0. Its content is undefined: here it is not zero.
 */
PVOID NTAPI shim_MmAllocateContiguousMemorySpecifyCache(SIZE_T bytes, PHYSICAL_ADDRESS low,
                                                        PHYSICAL_ADDRESS high, PHYSICAL_ADDRESS boundary,
                                                        MEMORY_CACHING_TYPE cache);

/* Without a boundary, the memory begins at an odd page. */
static uint32_t contiguous_runs(SIZE_T bytes) {
  return (uint32_t)((bytes + HOST_PAGE_BYTES + HOST_RUN_BYTES - 1) / HOST_RUN_BYTES);
}

static uint32_t runs_at[RUNS]; /* taken together with the first one */

PVOID NTAPI shim_MmAllocateContiguousMemorySpecifyCache(SIZE_T bytes, PHYSICAL_ADDRESS low,
                                                        PHYSICAL_ADDRESS high, PHYSICAL_ADDRESS boundary,
                                                        MEMORY_CACHING_TYPE cache) {
  uint64_t limit = (uint64_t)boundary.QuadPart;
  uint32_t align = limit > HOST_RUN_BYTES ? (uint32_t)(limit / HOST_RUN_BYTES) : 1;
  UNREFERENCED_PARAMETER(low);
  UNREFERENCED_PARAMETER(high);
  UNREFERENCED_PARAMETER(cache);
  if (bytes == 0 || bytes > MEMORY_BYTES || align > RUNS || (limit != 0 && bytes > limit) ||
      shim_allocation_fails())
    return NULL;
  host_take(shim_lock);
  uint32_t count = contiguous_runs(bytes);
  uint32_t first = find_runs(count, align);
  for (uint32_t i = 0; first != RUNS && i < count; i++) use_run(first + i, true);
  if (first != RUNS) runs_at[first] = count;
  host_release(shim_lock);
  if (first == RUNS) return NULL;
  uint8_t* address = memory + first * HOST_RUN_BYTES + (limit == 0 ? HOST_PAGE_BYTES : 0);
  RtlFillMemory(address, bytes, 0xa5);
  return address;
}
SHIM(MmAllocateContiguousMemorySpecifyCache);

static void give_contiguous(const uint8_t* address) {
  uint32_t first = (uint32_t)((uint64_t)(address - memory) / HOST_RUN_BYTES);
  host_take(shim_lock);
  for (uint32_t i = 0; i < runs_at[first]; i++) use_run(first + i, false);
  runs_at[first] = 0;
  host_release(shim_lock);
}

/* MmFreeContiguousMemory, a stub in Wine 8.0. */
void NTAPI shim_MmFreeContiguousMemory(PVOID address);
void NTAPI shim_MmFreeContiguousMemory(PVOID address) { give_contiguous(address); }
SHIM(MmFreeContiguousMemory);

/* MmGetPhysicalAddress, which returns the virtual address in Wine 8.0. 0 where nothing is mapped. */
PHYSICAL_ADDRESS NTAPI shim_MmGetPhysicalAddress(PVOID address);
PHYSICAL_ADDRESS NTAPI shim_MmGetPhysicalAddress(PVOID address) {
  const uint8_t* byte = address;
  PHYSICAL_ADDRESS found = {.QuadPart = 0};
  if (byte >= memory && byte < memory + MEMORY_BYTES) {
    found.QuadPart = (LONGLONG)(MEMORY_BASE + (uint64_t)(byte - memory));
    return found;
  }
  host_take(shim_lock);
  for (struct mapping* mapping = mappings; mapping < mappings + MOST_MAPPINGS; mapping++) {
    if (mapping->mdl == NULL || byte < mapping->address || byte >= mapping->address + mapping->bytes)
      continue;
    uint64_t offset = (uint64_t)(byte - mapping->address);
    found.QuadPart = (LONGLONG)(MmGetMdlPfnArray(mapping->mdl)[offset / HOST_PAGE_BYTES] * HOST_PAGE_BYTES +
                                offset % HOST_PAGE_BYTES);
  }
  host_release(shim_lock);
  return found;
}
SHIM(MmGetPhysicalAddress);

bool shim_memory_begin(void) {
  if (memory == NULL) memory = host_make_memory(MEMORY_BYTES);
  if (memory != NULL) host_forbid(memory, MEMORY_BYTES, true);
  return memory != NULL;
}

void shim_count_memory(struct shim_counts* counts) {
  for (uint32_t i = 0; i < RUNS; i++) counts->runs += run_is_used[i];
  for (uint32_t i = 0; i < MOST_MAPPINGS; i++) counts->mappings += mappings[i].mdl != NULL;
}
