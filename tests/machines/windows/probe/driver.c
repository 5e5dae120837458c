// SPDX-License-Identifier: MIT
/* A driver that finds out what the kernel below it has, and what of that works. */
#include <ntifs.h>

#include "probe.h"

#define WAIT_MS 300

static LONG notified;
static LONG cleaned;
static PIRP pending;
static PDEVICE_OBJECT device;

/* The code of what Wine's import library has no function for: lea, lea, call __wine_spec_unimplemented_stub.
 */
static BOOLEAN is_stub(const UCHAR* code) {
  static const UCHAR begin[] = {0x48, 0x83, 0xec, 0x28, 0x48, 0x8d, 0x0d};
  return RtlCompareMemory(code, begin, sizeof(begin)) == sizeof(begin) && code[11] == 0x48 &&
         code[12] == 0x8d && code[13] == 0x15 && code[18] == 0xe8 && code[23] == 0x90;
}

static PVOID find(const char* name) {
  ANSI_STRING narrow;
  UNICODE_STRING wide;
  RtlInitAnsiString(&narrow, name);
  if (!NT_SUCCESS(RtlAnsiStringToUnicodeString(&wide, &narrow, TRUE))) return NULL;
  PVOID routine = MmGetSystemRoutineAddress(&wide);
  RtlFreeUnicodeString(&wide);
  return routine;
}

static ULONG presence_of(const char* name) {
  const UCHAR* code = find(name);
  if (code == NULL) return PROBE_ABSENT;
  return is_stub(code) ? PROBE_STUB : PROBE_PRESENT;
}

static BOOLEAN is_signalled(PVOID object) {
  LARGE_INTEGER timeout = {.QuadPart = -10000LL * WAIT_MS};
  return KeWaitForSingleObject(object, Executive, KernelMode, FALSE, &timeout) == STATUS_SUCCESS;
}

static void NTAPI run_dpc(PKDPC dpc, PVOID context, PVOID first, PVOID second) {
  UNREFERENCED_PARAMETER(dpc);
  UNREFERENCED_PARAMETER(first);
  UNREFERENCED_PARAMETER(second);
  KeSetEvent(context, 0, FALSE);
}

static BOOLEAN runs_dpcs(void) {
  static KEVENT event;
  static KDPC dpc;
  KeInitializeEvent(&event, NotificationEvent, FALSE);
  KeInitializeDpc(&dpc, run_dpc, &event);
  return KeInsertQueueDpc(&dpc, NULL, NULL) && is_signalled(&event);
}

static BOOLEAN runs_timers(BOOLEAN with_dpc) {
  static KEVENT event;
  static KDPC dpc;
  static KTIMER timer;
  LARGE_INTEGER due = {.QuadPart = -10000};
  KeInitializeEvent(&event, NotificationEvent, FALSE);
  KeInitializeDpc(&dpc, run_dpc, &event);
  KeInitializeTimerEx(&timer, NotificationTimer);
  KeSetTimerEx(&timer, due, 0, with_dpc ? &dpc : NULL);
  BOOLEAN came = is_signalled(with_dpc ? (PVOID)&event : (PVOID)&timer);
  KeCancelTimer(&timer);
  return came;
}

static void NTAPI run_thread(PVOID event) {
  KeSetEvent(event, 0, FALSE);
  PsTerminateSystemThread(STATUS_SUCCESS);
}

static BOOLEAN runs_threads(void) {
  static KEVENT event;
  HANDLE thread;
  KeInitializeEvent(&event, NotificationEvent, FALSE);
  if (!NT_SUCCESS(PsCreateSystemThread(&thread, THREAD_ALL_ACCESS, NULL, NULL, NULL, run_thread, &event)))
    return FALSE;
  BOOLEAN ran = is_signalled(&event);
  ZwClose(thread);
  return ran;
}

static void NTAPI run_item(PDEVICE_OBJECT object, PVOID event) {
  UNREFERENCED_PARAMETER(object);
  KeSetEvent(event, 0, FALSE);
}

static BOOLEAN runs_work_items(void) {
  static KEVENT event;
  KeInitializeEvent(&event, NotificationEvent, FALSE);
  PIO_WORKITEM item = IoAllocateWorkItem(device);
  if (item == NULL) return FALSE;
  IoQueueWorkItem(item, run_item, DelayedWorkQueue, &event);
  BOOLEAN ran = is_signalled(&event);
  IoFreeWorkItem(item);
  return ran;
}

static BOOLEAN gives_pages(void) {
  PHYSICAL_ADDRESS low = {.QuadPart = 0};
  PHYSICAL_ADDRESS high = {.QuadPart = -1};
  PMDL mdl = MmAllocatePagesForMdl(low, high, low, 4 * PAGE_SIZE);
  return mdl != NULL && MmGetMdlByteCount(mdl) == 4 * PAGE_SIZE && MmGetMdlPfnArray(mdl)[0] != 0;
}

static BOOLEAN gives_contiguous(void) {
  PHYSICAL_ADDRESS low = {.QuadPart = 0};
  PHYSICAL_ADDRESS high = {.QuadPart = -1};
  return MmAllocateContiguousMemorySpecifyCache(4 * PAGE_SIZE, low, high, low, MmCached) != NULL;
}

static BOOLEAN has_physical_addresses(void) {
  return (ULONG64)MmGetPhysicalAddress(&notified).QuadPart < 1ULL << 46;
}

static BOOLEAN moves_threads(void) {
  KAFFINITY before = KeSetSystemAffinityThreadEx(1);
  BOOLEAN moved = KeGetCurrentProcessorNumberEx(NULL) == 0;
  KeRevertToUserAffinityThreadEx(before);
  return before != 0 && moved;
}

static BOOLEAN has_irql(void) {
  KIRQL before = KfRaiseIrql(DISPATCH_LEVEL);
  KIRQL raised = KfRaiseIrql(DISPATCH_LEVEL);
  KeLowerIrql(before);
  return before == PASSIVE_LEVEL && raised == DISPATCH_LEVEL;
}

static BOOLEAN attaches(void) {
  KAPC_STATE state;
  PEPROCESS other;
  if (!NT_SUCCESS(PsLookupProcessByProcessId(PsGetCurrentProcessId(), &other))) return FALSE;
  PEPROCESS own = IoGetCurrentProcess();
  KeStackAttachProcess((PKPROCESS)other, &state);
  BOOLEAN attached = IoGetCurrentProcess() == other;
  KeUnstackDetachProcess(&state);
  ObDereferenceObject(other);
  return other != own && attached;
}

static void NTAPI on_process(PEPROCESS process, HANDLE pid, PPS_CREATE_NOTIFY_INFO info) {
  UNREFERENCED_PARAMETER(process);
  UNREFERENCED_PARAMETER(pid);
  UNREFERENCED_PARAMETER(info);
  InterlockedIncrement(&notified);
}

static void NTAPI on_thread(HANDLE pid, HANDLE tid, BOOLEAN begins) {
  UNREFERENCED_PARAMETER(pid);
  UNREFERENCED_PARAMETER(tid);
  UNREFERENCED_PARAMETER(begins);
  InterlockedIncrement(&notified);
}

static void NTAPI on_image(PUNICODE_STRING name, HANDLE pid, PIMAGE_INFO info) {
  UNREFERENCED_PARAMETER(name);
  UNREFERENCED_PARAMETER(pid);
  UNREFERENCED_PARAMETER(info);
  InterlockedIncrement(&notified);
}

static BOOLEAN call(ULONG number) {
  switch (number) {
    case PROBE_DPC:
      return runs_dpcs();
    case PROBE_TIMER_DPC:
      return runs_timers(TRUE);
    case PROBE_TIMER:
      return runs_timers(FALSE);
    case PROBE_THREAD:
      return runs_threads();
    case PROBE_WORK_ITEM:
      return runs_work_items();
    case PROBE_PAGES:
      return gives_pages();
    case PROBE_CONTIGUOUS:
      return gives_contiguous();
    case PROBE_PHYSICAL:
      return has_physical_addresses();
    case PROBE_AFFINITY:
      return moves_threads();
    case PROBE_IRQL:
      return has_irql();
    case PROBE_ATTACH:
      return attaches();
    case PROBE_PROCESSES:
      return NT_SUCCESS(PsSetCreateProcessNotifyRoutineEx(on_process, FALSE));
    case PROBE_THREADS:
      return NT_SUCCESS(PsSetCreateThreadNotifyRoutine(on_thread));
    case PROBE_IMAGES:
      return NT_SUCCESS(PsSetLoadImageNotifyRoutine(on_image));
    default:
      return FALSE;
  }
}

static NTSTATUS complete(PIRP irp, NTSTATUS status, ULONG_PTR bytes) {
  irp->IoStatus.Status = status;
  irp->IoStatus.Information = bytes;
  IoCompleteRequest(irp, IO_NO_INCREMENT);
  return status;
}

static NTSTATUS pend(PIRP irp) {
  IoMarkIrpPending(irp);
  pending = irp;
  return STATUS_PENDING;
}

static NTSTATUS NTAPI control(PDEVICE_OBJECT object, PIRP irp) {
  UNREFERENCED_PARAMETER(object);
  PIO_STACK_LOCATION location = IoGetCurrentIrpStackLocation(irp);
  ULONG code = location->Parameters.DeviceIoControl.IoControlCode;
  ULONG in = location->Parameters.DeviceIoControl.InputBufferLength;
  ULONG* words = irp->AssociatedIrp.SystemBuffer;
  if (code == PROBE_PEND) return pend(irp);
  if (location->Parameters.DeviceIoControl.OutputBufferLength < sizeof(ULONG))
    return complete(irp, STATUS_BUFFER_TOO_SMALL, 0);
  if (code == PROBE_FIND && in > 1 && ((char*)words)[in - 1] == 0)
    *words = presence_of((char*)words);
  else if (code == PROBE_CALL && in >= sizeof(ULONG))
    *words = call(*words);
  else if (code == PROBE_NOTIFIED)
    *words = (ULONG)notified;
  else if (code == PROBE_CLEANED)
    *words = (ULONG)cleaned;
  else
    return complete(irp, STATUS_INVALID_DEVICE_REQUEST, 0);
  return complete(irp, STATUS_SUCCESS, sizeof(ULONG));
}

static NTSTATUS NTAPI open_or_close(PDEVICE_OBJECT object, PIRP irp) {
  UNREFERENCED_PARAMETER(object);
  return complete(irp, STATUS_SUCCESS, 0);
}

static NTSTATUS NTAPI clean_up(PDEVICE_OBJECT object, PIRP irp) {
  UNREFERENCED_PARAMETER(object);
  PIRP ended = InterlockedExchangePointer((PVOID*)&pending, NULL);
  if (ended != NULL) {
    InterlockedIncrement(&cleaned);
    complete(ended, STATUS_CANCELLED, 0);
  }
  return complete(irp, STATUS_SUCCESS, 0);
}

static void NTAPI unload(PDRIVER_OBJECT driver) {
  UNICODE_STRING link = RTL_CONSTANT_STRING(L"\\DosDevices\\" PROBE_NAME);
  UNREFERENCED_PARAMETER(driver);
  IoDeleteSymbolicLink(&link);
  IoDeleteDevice(device);
}

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING path);
NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING path) {
  UNICODE_STRING name = RTL_CONSTANT_STRING(L"\\Device\\" PROBE_NAME);
  UNICODE_STRING link = RTL_CONSTANT_STRING(L"\\DosDevices\\" PROBE_NAME);
  UNREFERENCED_PARAMETER(path);
  NTSTATUS status = IoCreateDevice(driver, 0, &name, FILE_DEVICE_UNKNOWN, 0, FALSE, &device);
  if (!NT_SUCCESS(status)) return status;
  status = IoCreateSymbolicLink(&link, &name);
  if (!NT_SUCCESS(status)) {
    IoDeleteDevice(device);
    return status;
  }
  driver->MajorFunction[IRP_MJ_CREATE] = open_or_close;
  driver->MajorFunction[IRP_MJ_CLOSE] = open_or_close;
  driver->MajorFunction[IRP_MJ_CLEANUP] = clean_up;
  driver->MajorFunction[IRP_MJ_DEVICE_CONTROL] = control;
  driver->DriverUnload = unload;
  return STATUS_SUCCESS;
}
