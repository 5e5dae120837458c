// SPDX-License-Identifier: MIT
/*
 * Calls of Windows' kernel that Wine 8.0 does not have, has as stubs, or answers without an effect. Test
 * builds of the driver have these instead; the shipped driver has none. Each has the contract of Microsoft's
 * documentation, as far as a driver can see it. docs/windows-tests.md lists them.
 */
#include "shims.h"

#include "host.h"

/* Both the function, and what a call of an imported function reads. */
#define SHIM(name)                                          \
  __asm__(".globl " #name "\n.set " #name ", shim_" #name); \
  void* const __imp_##name = (void*)shim_##name

#define SHIM_TAG 0x6d696873 /* of the pool */
#define MEMORY_BYTES (256ULL << 20)
#define MEMORY_BASE (1ULL << 32) /* the physical address of its first byte */
#define RUNS (MEMORY_BYTES / HOST_RUN_BYTES)
#define PAGES_OF_RUN (HOST_RUN_BYTES / HOST_PAGE_BYTES)
#define MOST_MAPPINGS 256
#define MOST_ROUTINES 8

static void* lock; /* of all that follows; never held while code of the driver runs */
static uint8_t* memory;
static bool run_is_used[RUNS];
static uint32_t random_state = 1;
static LONG allocations_left = -1;
static bool is_privileged = true;

static struct mapping {
  uint8_t* place;
  uint64_t bytes;
  PMDL mdl;
} mappings[MOST_MAPPINGS];

void shim_fail_after(int32_t allocations) { InterlockedExchange(&allocations_left, allocations); }

void shim_set_privileged(bool privileged) { is_privileged = privileged; }

bool shim_allocation_fails(void) {
  return allocations_left >= 0 && InterlockedDecrement(&allocations_left) < 0;
}

static uint32_t next_random(void) {
  random_state = random_state * 1664525 + 1013904223;
  return random_state >> 8;
}

/* --- Memory --- */

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
  host_take(lock);
  uint32_t done = take_runs(MmGetMdlPfnArray(mdl), count);
  bool refused = done == 0 || (done < count && (flags & MM_ALLOCATE_FULLY_REQUIRED));
  if (refused) give_runs(MmGetMdlPfnArray(mdl), done);
  host_release(lock);
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
  host_take(lock);
  give_runs(MmGetMdlPfnArray(mdl), (uint32_t)(mdl->ByteCount / HOST_PAGE_BYTES));
  host_release(lock);
  mdl->ByteCount = 0;
}
SHIM(MmFreePagesFromMdl);

static void* map_runs_of(PMDL mdl, uint32_t count) {
  uint64_t* offsets = host_allocate(count * sizeof(*offsets));
  if (offsets == NULL) return NULL;
  for (uint32_t i = 0; i < count; i++)
    offsets[i] = run_of_page(MmGetMdlPfnArray(mdl)[i * PAGES_OF_RUN]) * HOST_RUN_BYTES;
  void* place = host_map(offsets, count);
  host_free(offsets);
  return place;
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
  host_take(lock);
  struct mapping* mapping = mapping_of(NULL);
  void* place = mapping == NULL ? NULL : map_runs_of(mdl, runs_of(mdl));
  if (place != NULL) *mapping = (struct mapping){place, mdl->ByteCount, mdl};
  host_release(lock);
  if (place == NULL) return NULL;
  host_forbid((uint8_t*)place + mdl->ByteCount, runs_of(mdl) * HOST_RUN_BYTES - mdl->ByteCount, true);
  mdl->MappedSystemVa = place;
  mdl->MdlFlags |= MDL_MAPPED_TO_SYSTEM_VA;
  return place;
}
SHIM(MmMapLockedPagesSpecifyCache);

/* MmUnmapLockedPages, without an effect in Wine 8.0. */
void NTAPI shim_MmUnmapLockedPages(PVOID base, PMDL mdl);
void NTAPI shim_MmUnmapLockedPages(PVOID base, PMDL mdl) {
  host_take(lock);
  struct mapping* mapping = mapping_of(mdl);
  if (mapping != NULL && mapping->place == base) {
    host_forbid(base, runs_of(mdl) * HOST_RUN_BYTES, false);
    host_unmap(base, runs_of(mdl));
    *mapping = (struct mapping){0};
    mdl->MdlFlags &= ~MDL_MAPPED_TO_SYSTEM_VA;
  }
  host_release(lock);
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
  host_take(lock);
  uint32_t count = contiguous_runs(bytes);
  uint32_t first = find_runs(count, align);
  for (uint32_t i = 0; first != RUNS && i < count; i++) use_run(first + i, true);
  if (first != RUNS) runs_at[first] = count;
  host_release(lock);
  if (first == RUNS) return NULL;
  uint8_t* place = memory + first * HOST_RUN_BYTES + (limit == 0 ? HOST_PAGE_BYTES : 0);
  RtlFillMemory(place, bytes, 0xa5);
  return place;
}
SHIM(MmAllocateContiguousMemorySpecifyCache);

static void give_contiguous(const uint8_t* place) {
  uint32_t first = (uint32_t)((uint64_t)(place - memory) / HOST_RUN_BYTES);
  host_take(lock);
  for (uint32_t i = 0; i < runs_at[first]; i++) use_run(first + i, false);
  runs_at[first] = 0;
  host_release(lock);
}

/* MmFreeContiguousMemory, a stub in Wine 8.0. */
void NTAPI shim_MmFreeContiguousMemory(PVOID place);
void NTAPI shim_MmFreeContiguousMemory(PVOID place) { give_contiguous(place); }
SHIM(MmFreeContiguousMemory);

/* MmGetPhysicalAddress, which returns the virtual address in Wine 8.0. 0 where nothing is mapped. */
PHYSICAL_ADDRESS NTAPI shim_MmGetPhysicalAddress(PVOID place);
PHYSICAL_ADDRESS NTAPI shim_MmGetPhysicalAddress(PVOID place) {
  const uint8_t* byte = place;
  PHYSICAL_ADDRESS found = {.QuadPart = 0};
  if (byte >= memory && byte < memory + MEMORY_BYTES) {
    found.QuadPart = (LONGLONG)(MEMORY_BASE + (uint64_t)(byte - memory));
    return found;
  }
  host_take(lock);
  for (struct mapping* mapping = mappings; mapping < mappings + MOST_MAPPINGS; mapping++) {
    if (mapping->mdl == NULL || byte < mapping->place || byte >= mapping->place + mapping->bytes) continue;
    uint64_t offset = (uint64_t)(byte - mapping->place);
    found.QuadPart = (LONGLONG)(MmGetMdlPfnArray(mapping->mdl)[offset / HOST_PAGE_BYTES] * HOST_PAGE_BYTES +
                                offset % HOST_PAGE_BYTES);
  }
  host_release(lock);
  return found;
}
SHIM(MmGetPhysicalAddress);

/* --- Deferred procedure calls --- */

static struct cpu {
  LIST_ENTRY queue;
  void* wake;
  void* thread;
  bool runs; /* a routine */
} cpus[SHIM_CPUS];

static bool is_over;
static LIST_ENTRY timers;
static void* timer_wake;
static void* timer_thread;

/* KeInitializeDpc: Wine 8.0 does not fill all of it. */
void NTAPI shim_KeInitializeDpc(PRKDPC dpc, PKDEFERRED_ROUTINE routine, PVOID context);
void NTAPI shim_KeInitializeDpc(PRKDPC dpc, PKDEFERRED_ROUTINE routine, PVOID context) {
  RtlZeroMemory(dpc, sizeof(*dpc));
  dpc->Importance = MediumImportance;
  dpc->Number = 0xffff;
  dpc->DeferredRoutine = routine;
  dpc->DeferredContext = context;
}
SHIM(KeInitializeDpc);

/* KeSetTargetProcessorDpcEx, without an effect in Wine 8.0. There is one group here. */
NTSTATUS NTAPI shim_KeSetTargetProcessorDpcEx(PKDPC dpc, PPROCESSOR_NUMBER number);
NTSTATUS NTAPI shim_KeSetTargetProcessorDpcEx(PKDPC dpc, PPROCESSOR_NUMBER number) {
  if (number->Group != 0 || number->Number >= SHIM_CPUS) return STATUS_INVALID_PARAMETER;
  dpc->Number = number->Number;
  return STATUS_SUCCESS;
}
SHIM(KeSetTargetProcessorDpcEx);

/* The caller holds the lock. */
static bool queue_dpc(PRKDPC dpc, PVOID first, PVOID second) {
  uint32_t here = host_cpu() < SHIM_CPUS ? host_cpu() : 0;
  struct cpu* cpu = &cpus[dpc->Number < SHIM_CPUS ? dpc->Number : here];
  if (dpc->DpcData != NULL) return false;
  dpc->DpcData = cpu;
  dpc->SystemArgument1 = first;
  dpc->SystemArgument2 = second;
  InsertTailList(&cpu->queue, &dpc->DpcListEntry);
  host_set(cpu->wake);
  return true;
}

/*
 * KeInsertQueueDpc, which returns true and queues nothing in Wine 8.0. Callable at any IRQL. False: it is
 * queued already. Runs on its target processor, or on that of the caller; DPCs of a processor never run at
 * the same time.
 */
BOOLEAN NTAPI shim_KeInsertQueueDpc(PRKDPC dpc, PVOID first, PVOID second);
BOOLEAN NTAPI shim_KeInsertQueueDpc(PRKDPC dpc, PVOID first, PVOID second) {
  host_take(lock);
  bool queued = queue_dpc(dpc, first, second);
  host_release(lock);
  return queued;
}
SHIM(KeInsertQueueDpc);

static bool is_busy(void) {
  bool busy = false;
  host_take(lock);
  for (struct cpu* cpu = cpus; cpu < cpus + SHIM_CPUS; cpu++) busy |= cpu->runs || !IsListEmpty(&cpu->queue);
  host_release(lock);
  return busy;
}

/* KeFlushQueuedDpcs, without an effect in Wine 8.0. Returns when all queued ones have run. */
void NTAPI shim_KeFlushQueuedDpcs(void);
void NTAPI shim_KeFlushQueuedDpcs(void) {
  void* event = host_make_event();
  while (is_busy()) host_wait(event, 1);
  host_end_event(event);
}
SHIM(KeFlushQueuedDpcs);

static PKDPC next_dpc(struct cpu* cpu) {
  PKDPC dpc = NULL;
  host_take(lock);
  cpu->runs = !IsListEmpty(&cpu->queue);
  if (cpu->runs) {
    dpc = CONTAINING_RECORD(RemoveHeadList(&cpu->queue), KDPC, DpcListEntry);
    dpc->DpcData = NULL;
  }
  host_release(lock);
  return dpc;
}

static void run_dpcs(void* argument) {
  struct cpu* cpu = argument;
  host_bind((uint32_t)(cpu - cpus));
  while (!is_over) {
    host_wait(cpu->wake, 1000);
    for (PKDPC dpc = next_dpc(cpu); dpc != NULL; dpc = next_dpc(cpu))
      dpc->DeferredRoutine(dpc, dpc->DeferredContext, dpc->SystemArgument1, dpc->SystemArgument2);
  }
}

/* --- Timers --- */

/* KeInitializeTimerEx: Wine's timers are not these. */
void NTAPI shim_KeInitializeTimerEx(PKTIMER timer, TIMER_TYPE type);
void NTAPI shim_KeInitializeTimerEx(PKTIMER timer, TIMER_TYPE type) {
  RtlZeroMemory(timer, sizeof(*timer));
  timer->Header.Type = (UCHAR)type;
}
SHIM(KeInitializeTimerEx);

static bool unset_timer(PKTIMER timer) {
  bool was_set = timer->TimerListEntry.Flink != NULL;
  if (was_set) RemoveEntryList(&timer->TimerListEntry);
  timer->TimerListEntry.Flink = NULL;
  return was_set;
}

/*
 * KeSetTimerEx: in Wine 8.0 the DPC runs on some thread, of no processor. `due` is relative if it is
 * negative, which it has to be here; the period is in ms. Whether it was set already.
 */
BOOLEAN NTAPI shim_KeSetTimerEx(PKTIMER timer, LARGE_INTEGER due, LONG period, PKDPC dpc);
BOOLEAN NTAPI shim_KeSetTimerEx(PKTIMER timer, LARGE_INTEGER due, LONG period, PKDPC dpc) {
  host_take(lock);
  bool was_set = unset_timer(timer);
  timer->DueTime.QuadPart = host_time_ms() + (ULONGLONG)(-due.QuadPart) / 10000;
  timer->Period = (ULONG)period;
  timer->Dpc = dpc;
  InsertTailList(&timers, &timer->TimerListEntry);
  host_release(lock);
  host_set(timer_wake);
  return was_set;
}
SHIM(KeSetTimerEx);

/* KeCancelTimer, of such timers. Whether it was set; its DPC may be queued. */
BOOLEAN NTAPI shim_KeCancelTimer(PKTIMER timer);
BOOLEAN NTAPI shim_KeCancelTimer(PKTIMER timer) {
  host_take(lock);
  bool was_set = unset_timer(timer);
  host_release(lock);
  return was_set;
}
SHIM(KeCancelTimer);

/* Queues the DPC with the lock held: after KeCancelTimer() it is queued already, or never will be. */
static void expire(PKTIMER timer) {
  if (timer->DueTime.QuadPart > host_time_ms()) return;
  if (timer->Period != 0)
    timer->DueTime.QuadPart = host_time_ms() + timer->Period;
  else
    unset_timer(timer);
  queue_dpc(timer->Dpc, NULL, NULL);
}

static void expire_all(void) {
  host_take(lock);
  for (PLIST_ENTRY entry = timers.Flink; entry != &timers;) {
    PKTIMER timer = CONTAINING_RECORD(entry, KTIMER, TimerListEntry);
    entry = entry->Flink;
    expire(timer);
  }
  host_release(lock);
}

static void run_timers(void* unused) {
  UNREFERENCED_PARAMETER(unused);
  while (!is_over) {
    expire_all();
    host_wait(timer_wake, IsListEmpty(&timers) ? 1000 : 1);
  }
}

/* --- Notifications --- */

enum kind { PROCESS, THREAD, IMAGE, POWER, KINDS };

static struct {
  void* routine;
  void* context;
} routines[KINDS][MOST_ROUTINES];

static NTSTATUS add_routine(enum kind kind, void* routine, void* context) {
  NTSTATUS status = STATUS_INSUFFICIENT_RESOURCES;
  if (shim_allocation_fails()) return status;
  host_take(lock);
  for (int i = 0; i < MOST_ROUTINES && status != STATUS_SUCCESS; i++) {
    if (routines[kind][i].routine != NULL) continue;
    routines[kind][i].routine = routine;
    routines[kind][i].context = context;
    status = STATUS_SUCCESS;
  }
  host_release(lock);
  return status;
}

static NTSTATUS remove_routine(enum kind kind, const void* routine) {
  NTSTATUS status = STATUS_PROCEDURE_NOT_FOUND;
  host_take(lock);
  for (int i = 0; i < MOST_ROUTINES; i++) {
    if (routines[kind][i].routine != routine) continue;
    routines[kind][i].routine = NULL;
    status = STATUS_SUCCESS;
  }
  host_release(lock);
  return status;
}

/* PsSetCreateProcessNotifyRoutine, which succeeds and never calls in Wine 8.0. */
NTSTATUS NTAPI shim_PsSetCreateProcessNotifyRoutine(PCREATE_PROCESS_NOTIFY_ROUTINE routine, BOOLEAN remove);
NTSTATUS NTAPI shim_PsSetCreateProcessNotifyRoutine(PCREATE_PROCESS_NOTIFY_ROUTINE routine, BOOLEAN remove) {
  return remove ? remove_routine(PROCESS, routine) : add_routine(PROCESS, routine, NULL);
}
SHIM(PsSetCreateProcessNotifyRoutine);

/* PsSetCreateThreadNotifyRoutine and its removal, as before. */
NTSTATUS NTAPI shim_PsSetCreateThreadNotifyRoutine(PCREATE_THREAD_NOTIFY_ROUTINE routine);
NTSTATUS NTAPI shim_PsSetCreateThreadNotifyRoutine(PCREATE_THREAD_NOTIFY_ROUTINE routine) {
  return add_routine(THREAD, routine, NULL);
}
SHIM(PsSetCreateThreadNotifyRoutine);

NTSTATUS NTAPI shim_PsRemoveCreateThreadNotifyRoutine(PCREATE_THREAD_NOTIFY_ROUTINE routine);
NTSTATUS NTAPI shim_PsRemoveCreateThreadNotifyRoutine(PCREATE_THREAD_NOTIFY_ROUTINE routine) {
  return remove_routine(THREAD, routine);
}
SHIM(PsRemoveCreateThreadNotifyRoutine);

/* PsSetLoadImageNotifyRoutine, which tells only of drivers in Wine 8.0, and its removal. */
NTSTATUS NTAPI shim_PsSetLoadImageNotifyRoutine(PLOAD_IMAGE_NOTIFY_ROUTINE routine);
NTSTATUS NTAPI shim_PsSetLoadImageNotifyRoutine(PLOAD_IMAGE_NOTIFY_ROUTINE routine) {
  return add_routine(IMAGE, routine, NULL);
}
SHIM(PsSetLoadImageNotifyRoutine);

NTSTATUS NTAPI shim_PsRemoveLoadImageNotifyRoutine(PLOAD_IMAGE_NOTIFY_ROUTINE routine);
NTSTATUS NTAPI shim_PsRemoveLoadImageNotifyRoutine(PLOAD_IMAGE_NOTIFY_ROUTINE routine) {
  return remove_routine(IMAGE, routine);
}
SHIM(PsRemoveLoadImageNotifyRoutine);

/* ExCreateCallback, ExRegisterCallback, ExUnregisterCallback: in Wine 8.0 nobody calls \Callback\PowerState.
 */
NTSTATUS NTAPI shim_ExCreateCallback(PCALLBACK_OBJECT* object, POBJECT_ATTRIBUTES attributes, BOOLEAN create,
                                     BOOLEAN multiple);
NTSTATUS NTAPI shim_ExCreateCallback(PCALLBACK_OBJECT* object, POBJECT_ATTRIBUTES attributes, BOOLEAN create,
                                     BOOLEAN multiple) {
  UNREFERENCED_PARAMETER(attributes);
  UNREFERENCED_PARAMETER(create);
  UNREFERENCED_PARAMETER(multiple);
  if (shim_allocation_fails()) return STATUS_INSUFFICIENT_RESOURCES;
  *object = (PCALLBACK_OBJECT)routines[POWER];
  return STATUS_SUCCESS;
}
SHIM(ExCreateCallback);

PVOID NTAPI shim_ExRegisterCallback(PCALLBACK_OBJECT object, PCALLBACK_FUNCTION routine, PVOID context);
PVOID NTAPI shim_ExRegisterCallback(PCALLBACK_OBJECT object, PCALLBACK_FUNCTION routine, PVOID context) {
  UNREFERENCED_PARAMETER(object);
  return NT_SUCCESS(add_routine(POWER, (void*)routine, context)) ? (void*)routine : NULL;
}
SHIM(ExRegisterCallback);

void NTAPI shim_ExUnregisterCallback(PVOID registration);
void NTAPI shim_ExUnregisterCallback(PVOID registration) { remove_routine(POWER, registration); }
SHIM(ExUnregisterCallback);

static void* original_of(PCWSTR text) {
  UNICODE_STRING name;
  RtlInitUnicodeString(&name, text);
  return MmGetSystemRoutineAddress(&name);
}

/* ObfDereferenceObject: the callback object is none of Wine's. */
LONG_PTR FASTCALL shim_ObfDereferenceObject(PVOID object);
LONG_PTR FASTCALL shim_ObfDereferenceObject(PVOID object) {
  LONG_PTR(FASTCALL * original)(PVOID) = original_of(L"ObfDereferenceObject");
  if (object == (PVOID)routines[POWER] || original == NULL) return 0;
  return original(object);
}
SHIM(ObfDereferenceObject);

#define MODULE_CLASS 11
#define MOST_DRIVERS 4

/* Of the answer to class 11: a count and modules. */
struct module {
  PVOID unused[2];
  PVOID base;
  ULONG bytes;
  ULONG flags;
  USHORT orders[3];
  USHORT name_offset;
  char path[256];
};

struct modules {
  ULONG count;
  struct module modules[];
};

static struct module drivers[MOST_DRIVERS];
static ULONG driver_count;

void shim_add_driver(PUNICODE_STRING path, const IMAGE_INFO* info) {
  struct module driver = {.base = info->ImageBase, .bytes = (ULONG)info->ImageSize};
  for (USHORT i = 0; i < path->Length / 2 && i + 1U < sizeof(driver.path); i++) {
    driver.path[i] = (char)path->Buffer[i];
    if (driver.path[i] == '\\') driver.name_offset = i + 1;
  }
  host_take(lock);
  if (driver_count < MOST_DRIVERS) drivers[driver_count++] = driver;
  host_release(lock);
}

/* ZwQuerySystemInformation: the drivers that Wine 8.0 lists are made up, and not those that are loaded. */
NTSTATUS NTAPI shim_ZwQuerySystemInformation(ULONG class, PVOID information, ULONG bytes, PULONG returned);
NTSTATUS NTAPI shim_ZwQuerySystemInformation(ULONG class, PVOID information, ULONG bytes, PULONG returned) {
  NTSTATUS(NTAPI * original)(ULONG, PVOID, ULONG, PULONG) = original_of(L"ZwQuerySystemInformation");
  struct modules* modules = information;
  NTSTATUS status = original(class, information, bytes, returned);
  if (class != MODULE_CLASS || !NT_SUCCESS(status)) return status;
  if (sizeof(*modules) + (modules->count + driver_count) * sizeof(modules->modules[0]) > bytes)
    return STATUS_INFO_LENGTH_MISMATCH;
  host_take(lock);
  RtlCopyMemory(modules->modules + modules->count, drivers, driver_count * sizeof(drivers[0]));
  modules->count += driver_count;
  host_release(lock);
  return status;
}
SHIM(ZwQuerySystemInformation);

#define FOR_EACH_ROUTINE(kind, type, call)          \
  for (int i = 0; i < MOST_ROUTINES; i++) {         \
    type routine = (type)routines[kind][i].routine; \
    if (routine != NULL) call;                      \
  }

void shim_notify_process(HANDLE parent, HANDLE pid, BOOLEAN begins) {
  FOR_EACH_ROUTINE(PROCESS, PCREATE_PROCESS_NOTIFY_ROUTINE, routine(parent, pid, begins))
}

void shim_notify_thread(HANDLE pid, HANDLE tid, BOOLEAN begins) {
  FOR_EACH_ROUTINE(THREAD, PCREATE_THREAD_NOTIFY_ROUTINE, routine(pid, tid, begins))
}

void shim_notify_image(PUNICODE_STRING path, HANDLE pid, PIMAGE_INFO info) {
  FOR_EACH_ROUTINE(IMAGE, PLOAD_IMAGE_NOTIFY_ROUTINE, routine(path, pid, info))
}

void shim_notify_power(bool returns){
    FOR_EACH_ROUTINE(POWER, PCALLBACK_FUNCTION,
                     routine(routines[POWER][i].context, (PVOID)PO_CB_SYSTEM_STATE_LOCK,
                             (PVOID)(ULONG_PTR)returns))}

/* --- Rights
   -------------------------------------------------------------------------------------------------- */

/* SeSinglePrivilegeCheck: Wine 8.0 looks at the service's token, not at that of the client. */
BOOLEAN NTAPI shim_SeSinglePrivilegeCheck(LUID privilege, KPROCESSOR_MODE mode);
BOOLEAN NTAPI shim_SeSinglePrivilegeCheck(LUID privilege, KPROCESSOR_MODE mode) {
  UNREFERENCED_PARAMETER(privilege);
  return mode == KernelMode || is_privileged;
}
SHIM(SeSinglePrivilegeCheck);

/* --- Begin and end --- */

static void begin_cpu(struct cpu* cpu) {
  InitializeListHead(&cpu->queue);
  if (cpu->wake == NULL) cpu->wake = host_make_event();
  cpu->thread = host_begin_thread(run_dpcs, cpu);
}

/* A program for Linux loads the driver more than once. */
NTSTATUS shims_begin(void) {
  if (memory == NULL) {
    memory = host_make_memory(MEMORY_BYTES);
    lock = host_make_lock();
    timer_wake = host_make_event();
  }
  if (memory == NULL || lock == NULL || timer_wake == NULL) return STATUS_INSUFFICIENT_RESOURCES;
  host_forbid(memory, MEMORY_BYTES, true);
  is_over = false;
  driver_count = 0;
  InitializeListHead(&timers);
  for (struct cpu* cpu = cpus; cpu < cpus + SHIM_CPUS; cpu++) begin_cpu(cpu);
  timer_thread = host_begin_thread(run_timers, NULL);
  return STATUS_SUCCESS;
}

void shims_end(void) {
  is_over = true;
  for (struct cpu* cpu = cpus; cpu < cpus + SHIM_CPUS; cpu++) {
    host_set(cpu->wake);
    host_join(cpu->thread);
  }
  host_set(timer_wake);
  host_join(timer_thread);
}

struct shim_counts shim_counts(void) {
  struct shim_counts counts = {0};
  host_take(lock);
  for (uint32_t i = 0; i < RUNS; i++) counts.runs += run_is_used[i];
  for (uint32_t i = 0; i < MOST_MAPPINGS; i++) counts.mappings += mappings[i].mdl != NULL;
  for (PLIST_ENTRY entry = timers.Flink; entry != &timers; entry = entry->Flink) counts.timers++;
  for (int kind = 0; kind < KINDS; kind++)
    for (int i = 0; i < MOST_ROUTINES; i++) counts.routines += routines[kind][i].routine != NULL;
  host_release(lock);
  return counts;
}
