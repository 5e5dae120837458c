// SPDX-License-Identifier: MIT
/*
 * Calls of Windows' kernel that Wine 8.0 does not have, has as stubs, or answers without an effect. Test
 * builds of the driver have these instead; the shipped driver has none. Each has the contract of Microsoft's
 * documentation, as far as a driver can see it. docs/windows-tests.md lists them.
 */
#include "shims.h"

#include "host.h"

#define MOST_ROUTINES 8

void* shim_lock;
static LONG allocations_left = -1;
static bool is_privileged = true;

void shim_fail_after(int32_t allocations) { InterlockedExchange(&allocations_left, allocations); }

void shim_set_privileged(bool privileged) { is_privileged = privileged; }

bool shim_allocation_fails(void) {
  return allocations_left >= 0 && InterlockedDecrement(&allocations_left) < 0;
}

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
  host_take(shim_lock);
  bool queued = queue_dpc(dpc, first, second);
  host_release(shim_lock);
  return queued;
}
SHIM(KeInsertQueueDpc);

static bool is_busy(void) {
  bool busy = false;
  host_take(shim_lock);
  for (struct cpu* cpu = cpus; cpu < cpus + SHIM_CPUS; cpu++) busy |= cpu->runs || !IsListEmpty(&cpu->queue);
  host_release(shim_lock);
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
  host_take(shim_lock);
  cpu->runs = !IsListEmpty(&cpu->queue);
  if (cpu->runs) {
    dpc = CONTAINING_RECORD(RemoveHeadList(&cpu->queue), KDPC, DpcListEntry);
    dpc->DpcData = NULL;
  }
  host_release(shim_lock);
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
  host_take(shim_lock);
  bool was_set = unset_timer(timer);
  timer->DueTime.QuadPart = host_time_ms() + (ULONGLONG)(-due.QuadPart) / 10000;
  timer->Period = (ULONG)period;
  timer->Dpc = dpc;
  InsertTailList(&timers, &timer->TimerListEntry);
  host_release(shim_lock);
  host_set(timer_wake);
  return was_set;
}
SHIM(KeSetTimerEx);

/* KeCancelTimer, of such timers. Whether it was set; its DPC may be queued. */
BOOLEAN NTAPI shim_KeCancelTimer(PKTIMER timer);
BOOLEAN NTAPI shim_KeCancelTimer(PKTIMER timer) {
  host_take(shim_lock);
  bool was_set = unset_timer(timer);
  host_release(shim_lock);
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
  host_take(shim_lock);
  for (PLIST_ENTRY entry = timers.Flink; entry != &timers;) {
    PKTIMER timer = CONTAINING_RECORD(entry, KTIMER, TimerListEntry);
    entry = entry->Flink;
    expire(timer);
  }
  host_release(shim_lock);
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
  host_take(shim_lock);
  for (int i = 0; i < MOST_ROUTINES && status != STATUS_SUCCESS; i++) {
    if (routines[kind][i].routine != NULL) continue;
    routines[kind][i].routine = routine;
    routines[kind][i].context = context;
    status = STATUS_SUCCESS;
  }
  host_release(shim_lock);
  return status;
}

static NTSTATUS remove_routine(enum kind kind, const void* routine) {
  NTSTATUS status = STATUS_PROCEDURE_NOT_FOUND;
  host_take(shim_lock);
  for (int i = 0; i < MOST_ROUTINES; i++) {
    if (routines[kind][i].routine != routine) continue;
    routines[kind][i].routine = NULL;
    status = STATUS_SUCCESS;
  }
  host_release(shim_lock);
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
  host_take(shim_lock);
  if (driver_count < MOST_DRIVERS) drivers[driver_count++] = driver;
  host_release(shim_lock);
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
  host_take(shim_lock);
  RtlCopyMemory(modules->modules + modules->count, drivers, driver_count * sizeof(drivers[0]));
  modules->count += driver_count;
  host_release(shim_lock);
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
  if (shim_lock == NULL) {
    shim_lock = host_make_lock();
    timer_wake = host_make_event();
  }
  if (shim_lock == NULL || timer_wake == NULL || !shim_memory_begin()) return STATUS_INSUFFICIENT_RESOURCES;
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
  host_take(shim_lock);
  shim_count_memory(&counts);
  for (PLIST_ENTRY entry = timers.Flink; entry != &timers; entry = entry->Flink) counts.timers++;
  for (int kind = 0; kind < KINDS; kind++)
    for (int i = 0; i < MOST_ROUTINES; i++) counts.routines += routines[kind][i].routine != NULL;
  host_release(shim_lock);
  return counts;
}
