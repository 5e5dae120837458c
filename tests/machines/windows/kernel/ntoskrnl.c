// SPDX-License-Identifier: MIT
/*
 * The calls of Windows' kernel that Wine has and the shims do not, for the driver as a part of a Linux
 * program: as much of each as the driver uses. The driver is never in another process than its client.
 */
#include <ntifs.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "device.h"
#include "host.h"
#include "shims.h"

NTSTATUS NTAPI TestEntry(PDRIVER_OBJECT driver, PUNICODE_STRING path);

static DRIVER_OBJECT driver;
static PDEVICE_OBJECT device_object;
static void* cancel_lock;
static void* dispatcher; /* lock of events and mutexes */
static void* changed;    /* set when one of them is signalled */

static void fail_test(const char* why) {
  host_report(why);
  abort();
}

/* --- Memory --- */

PVOID NTAPI ExAllocatePoolWithTag(POOL_TYPE type, SIZE_T bytes, ULONG tag) {
  UNREFERENCED_PARAMETER(type);
  if (shim_allocation_fails()) return NULL;
  uint64_t* block = malloc(bytes + 16);
  if (block == NULL) return NULL;
  block[0] = tag;
  memset(block + 2, 0xa5, bytes);
  return block + 2;
}

void NTAPI ExFreePoolWithTag(PVOID block, ULONG tag) {
  uint64_t* begin = (uint64_t*)block - 2;
  if (tag != 0 && begin[0] != tag) fail_test("ExFreePoolWithTag(): another tag\n");
  free(begin);
}

void NTAPI ExFreePool(PVOID block) { ExFreePoolWithTag(block, 0); }

PMDL NTAPI IoAllocateMdl(PVOID address, ULONG bytes, BOOLEAN secondary, BOOLEAN charge, PIRP irp) {
  UNREFERENCED_PARAMETER(secondary);
  UNREFERENCED_PARAMETER(charge);
  UNREFERENCED_PARAMETER(irp);
  PMDL mdl = calloc(1, sizeof(*mdl) + sizeof(PFN_NUMBER) * (bytes / PAGE_SIZE + 2));
  mdl->StartVa = PAGE_ALIGN(address);
  mdl->ByteOffset = BYTE_OFFSET(address);
  mdl->ByteCount = bytes;
  return mdl;
}

void NTAPI IoFreeMdl(PMDL mdl) { free(mdl); }

SIZE_T NTAPI RtlCompareMemory(const VOID* left, const VOID* right, SIZE_T bytes) {
  SIZE_T same = 0;
  while (same < bytes && ((const char*)left)[same] == ((const char*)right)[same]) same++;
  return same;
}

/* --- Text --- */

void NTAPI RtlInitUnicodeString(PUNICODE_STRING string, PCWSTR text) {
  USHORT count = 0;
  while (text != NULL && text[count] != 0) count++;
  string->Buffer = (PWSTR)text;
  string->Length = (USHORT)(2 * count);
  string->MaximumLength = (USHORT)(2 * count + 2);
}

ULONG DbgPrint(PCSTR format, ...) {
  UNREFERENCED_PARAMETER(format);
  return 0;
}

/* --- Locks and events --- */

#undef KeInitializeSpinLock
void NTAPI KeInitializeSpinLock(PKSPIN_LOCK lock) { *lock = 0; }

void NTAPI KeAcquireSpinLockAtDpcLevel(PKSPIN_LOCK lock) {
  while (InterlockedExchange64((LONG64*)lock, 1) != 0) host_yield();
}

void NTAPI KeReleaseSpinLockFromDpcLevel(PKSPIN_LOCK lock) { InterlockedExchange64((LONG64*)lock, 0); }

KIRQL NTAPI KeAcquireSpinLockRaiseToDpc(PKSPIN_LOCK lock) {
  KeAcquireSpinLockAtDpcLevel(lock);
  return PASSIVE_LEVEL;
}

void NTAPI KeReleaseSpinLock(PKSPIN_LOCK lock, KIRQL irql) {
  UNREFERENCED_PARAMETER(irql);
  KeReleaseSpinLockFromDpcLevel(lock);
}

void NTAPI KeInitializeEvent(PRKEVENT event, EVENT_TYPE type, BOOLEAN state) {
  memset(event, 0, sizeof(*event));
  event->Header.Type = (UCHAR)type;
  event->Header.SignalState = state;
}

static LONG signal(DISPATCHER_HEADER* header) {
  host_take(dispatcher);
  LONG before = header->SignalState;
  header->SignalState = 1;
  host_release(dispatcher);
  host_set(changed);
  return before;
}

LONG NTAPI KeSetEvent(PRKEVENT event, KPRIORITY increment, BOOLEAN wait) {
  UNREFERENCED_PARAMETER(increment);
  UNREFERENCED_PARAMETER(wait);
  return signal(&event->Header);
}

void NTAPI KeClearEvent(PRKEVENT event) { event->Header.SignalState = 0; }

LONG NTAPI KeResetEvent(PRKEVENT event) { return InterlockedExchange(&event->Header.SignalState, 0); }

#define MUTEX_TYPE 2

void NTAPI KeInitializeMutex(PRKMUTEX mutex, ULONG level) {
  UNREFERENCED_PARAMETER(level);
  memset(mutex, 0, sizeof(*mutex));
  mutex->Header.Type = MUTEX_TYPE;
  mutex->Header.SignalState = 1;
}

LONG NTAPI KeReleaseMutex(PRKMUTEX mutex, BOOLEAN wait) {
  UNREFERENCED_PARAMETER(wait);
  if (mutex->Header.SignalState != 0) fail_test("KeReleaseMutex(): it is free\n");
  return signal(&mutex->Header);
}

static bool try_to_take(DISPATCHER_HEADER* header) {
  host_take(dispatcher);
  bool is_signalled = header->SignalState > 0;
  if (is_signalled && header->Type != NotificationEvent) header->SignalState = 0;
  host_release(dispatcher);
  return is_signalled;
}

NTSTATUS NTAPI KeWaitForSingleObject(PVOID object, KWAIT_REASON reason, KPROCESSOR_MODE mode,
                                     BOOLEAN alertable, PLARGE_INTEGER timeout) {
  uint64_t most_ms = timeout == NULL ? UINT64_MAX : (uint64_t)(-timeout->QuadPart) / 10000;
  uint64_t begin = host_time_ms();
  UNREFERENCED_PARAMETER(reason);
  UNREFERENCED_PARAMETER(mode);
  UNREFERENCED_PARAMETER(alertable);
  while (!try_to_take(object)) {
    if (host_time_ms() - begin >= most_ms) return STATUS_TIMEOUT;
    host_wait(changed, 1);
  }
  return STATUS_SUCCESS;
}

NTSTATUS NTAPI KeDelayExecutionThread(KPROCESSOR_MODE mode, BOOLEAN alertable, PLARGE_INTEGER interval) {
  UNREFERENCED_PARAMETER(mode);
  UNREFERENCED_PARAMETER(alertable);
  void* event = host_make_event();
  host_wait(event, (uint32_t)(-interval->QuadPart / 10000));
  host_end_event(event);
  return STATUS_SUCCESS;
}

#undef IoAcquireCancelSpinLock
#undef IoReleaseCancelSpinLock
void NTAPI IoAcquireCancelSpinLock(PKIRQL irql) {
  host_take(cancel_lock);
  *irql = PASSIVE_LEVEL;
}

void NTAPI IoReleaseCancelSpinLock(KIRQL irql) {
  UNREFERENCED_PARAMETER(irql);
  host_release(cancel_lock);
}

/* --- Processes --- */

HANDLE NTAPI PsGetCurrentProcessId(void) { return (HANDLE)4; }

HANDLE NTAPI PsGetCurrentThreadId(void) { return (HANDLE)(ULONG_PTR)host_thread(); }

/* Classes 0, the machine with 256 MiB of memory; 5, processes; and 11, modules: one of each. */
static NTSTATUS NTAPI query_system(ULONG class, PVOID information, ULONG bytes, PULONG returned) {
  static const char path[] = "\\SystemRoot\\System32\\drivers\\example.sys";
  uint8_t* answer = information;
  UNREFERENCED_PARAMETER(returned);
  if (class == 0) {
    if (bytes < 64) return STATUS_INFO_LENGTH_MISMATCH;
    ((ULONG*)answer)[2] = PAGE_SIZE;
    ((ULONG*)answer)[3] = 65536;
    return STATUS_SUCCESS;
  }
  if (class != 5 && class != 11) return STATUS_INVALID_INFO_CLASS;
  if (bytes < 8 + 296) return STATUS_INFO_LENGTH_MISMATCH;
  memset(answer, 0, 8 + 296);
  if (class == 5) {
    *(HANDLE*)(answer + 80) = (HANDLE)1234;
    return STATUS_SUCCESS;
  }
  *(ULONG*)answer = 1;
  *(ULONG64*)(answer + 24) = 0xfffff80012340000;
  *(ULONG*)(answer + 32) = 0x4000;
  *(USHORT*)(answer + 46) = sizeof("\\SystemRoot\\System32\\drivers\\") - 1;
  memcpy(answer + 48, path, sizeof(path));
  return STATUS_SUCCESS;
}

NTSTATUS NTAPI ZwOpenProcess(PHANDLE handle, ACCESS_MASK access, POBJECT_ATTRIBUTES attributes,
                             PCLIENT_ID client) {
  UNREFERENCED_PARAMETER(access);
  UNREFERENCED_PARAMETER(attributes);
  *handle = (HANDLE)32;
  return client->UniqueProcess == (HANDLE)1234 ? STATUS_SUCCESS : STATUS_INVALID_CID;
}

/* No memory is mapped. */
NTSTATUS NTAPI ZwQueryVirtualMemory(HANDLE process, PVOID address, ULONG class, PVOID information,
                                    SIZE_T bytes, PSIZE_T returned);
NTSTATUS NTAPI ZwQueryVirtualMemory(HANDLE process, PVOID address, ULONG class, PVOID information,
                                    SIZE_T bytes, PSIZE_T returned) {
  UNREFERENCED_PARAMETER(process);
  UNREFERENCED_PARAMETER(address);
  UNREFERENCED_PARAMETER(class);
  UNREFERENCED_PARAMETER(information);
  UNREFERENCED_PARAMETER(bytes);
  UNREFERENCED_PARAMETER(returned);
  return STATUS_INVALID_PARAMETER;
}

/* --- Security --- */

NTSTATUS NTAPI RtlCreateSecurityDescriptor(PSECURITY_DESCRIPTOR descriptor, ULONG revision) {
  memset(descriptor, 0, sizeof(SECURITY_DESCRIPTOR));
  return revision == SECURITY_DESCRIPTOR_REVISION ? STATUS_SUCCESS : STATUS_UNKNOWN_REVISION;
}

NTSTATUS NTAPI RtlCreateAcl(PACL acl, ULONG bytes, ULONG revision) {
  acl->AclRevision = (UCHAR)revision;
  acl->AclSize = (USHORT)bytes;
  acl->AceCount = 0;
  return STATUS_SUCCESS;
}

NTSTATUS NTAPI RtlAddAccessAllowedAce(PACL acl, ULONG revision, ACCESS_MASK access, PSID sid) {
  UNREFERENCED_PARAMETER(revision);
  UNREFERENCED_PARAMETER(access);
  acl->AceCount++;
  return sid == NULL ? STATUS_INVALID_SID : STATUS_SUCCESS;
}

NTSTATUS NTAPI RtlSetDaclSecurityDescriptor(PSECURITY_DESCRIPTOR descriptor, BOOLEAN present, PACL acl,
                                            BOOLEAN defaulted) {
  UNREFERENCED_PARAMETER(descriptor);
  UNREFERENCED_PARAMETER(defaulted);
  return present && acl->AceCount == 2 ? STATUS_SUCCESS : STATUS_INVALID_ACL;
}

/* Functions that a shim falls back on; there are none of Wine's. */
PVOID NTAPI MmGetSystemRoutineAddress(PUNICODE_STRING name) {
  static const char known[] = "ZwQuerySystemInformation";
  USHORT same = 0;
  while (same < name->Length / 2 && name->Buffer[same] == (WCHAR)known[same]) same++;
  return same == sizeof(known) - 1 ? (PVOID)query_system : NULL;
}

/* --- Devices --- */

NTSTATUS NTAPI IoCreateDevice(PDRIVER_OBJECT owner, ULONG extension_bytes, PUNICODE_STRING name,
                              DEVICE_TYPE type, ULONG characteristics, BOOLEAN exclusive,
                              PDEVICE_OBJECT* created) {
  UNREFERENCED_PARAMETER(name);
  UNREFERENCED_PARAMETER(exclusive);
  if (shim_allocation_fails()) return STATUS_INSUFFICIENT_RESOURCES;
  device_object = calloc(1, sizeof(*device_object) + extension_bytes);
  device_object->DriverObject = owner;
  device_object->DeviceType = type;
  device_object->Characteristics = characteristics;
  device_object->DeviceExtension = device_object + 1;
  owner->DeviceObject = device_object;
  *created = device_object;
  return STATUS_SUCCESS;
}

void NTAPI IoDeleteDevice(PDEVICE_OBJECT object) {
  free(object);
  device_object = NULL;
}

NTSTATUS NTAPI IoCreateSymbolicLink(PUNICODE_STRING link, PUNICODE_STRING name) {
  UNREFERENCED_PARAMETER(link);
  UNREFERENCED_PARAMETER(name);
  return shim_allocation_fails() ? STATUS_INSUFFICIENT_RESOURCES : STATUS_SUCCESS;
}

NTSTATUS NTAPI IoDeleteSymbolicLink(PUNICODE_STRING link) {
  UNREFERENCED_PARAMETER(link);
  return STATUS_SUCCESS;
}

NTSTATUS NTAPI IoRegisterShutdownNotification(PDEVICE_OBJECT object) {
  UNREFERENCED_PARAMETER(object);
  return STATUS_SUCCESS;
}

void NTAPI IoUnregisterShutdownNotification(PDEVICE_OBJECT object) { UNREFERENCED_PARAMETER(object); }

/* The device has a security descriptor that nobody asks for here. */
NTSTATUS NTAPI ObOpenObjectByPointer(PVOID object, ULONG attributes, PACCESS_STATE state, ACCESS_MASK access,
                                     POBJECT_TYPE type, KPROCESSOR_MODE mode, PHANDLE handle) {
  UNREFERENCED_PARAMETER(object);
  UNREFERENCED_PARAMETER(attributes);
  UNREFERENCED_PARAMETER(state);
  UNREFERENCED_PARAMETER(access);
  UNREFERENCED_PARAMETER(type);
  UNREFERENCED_PARAMETER(mode);
  *handle = (HANDLE)16;
  return STATUS_SUCCESS;
}

NTSTATUS NTAPI ZwSetSecurityObject(HANDLE handle, SECURITY_INFORMATION what,
                                   PSECURITY_DESCRIPTOR descriptor) {
  UNREFERENCED_PARAMETER(handle);
  UNREFERENCED_PARAMETER(what);
  return descriptor == NULL ? STATUS_INVALID_PARAMETER : STATUS_SUCCESS;
}

NTSTATUS NTAPI ZwClose(HANDLE handle) {
  UNREFERENCED_PARAMETER(handle);
  return STATUS_SUCCESS;
}

/* --- Requests --- */

struct handle {
  FILE_OBJECT file;
};

struct pending {
  IRP irp;
  IO_STACK_LOCATION location;
  void* ended;
  void* out;
  ULONG room;
  ULONG method;
  LONG completions;
};

/* As Windows does it: output goes to the client with a status that is no error. */
void FASTCALL IofCompleteRequest(PIRP irp, CCHAR boost) {
  struct pending* pending = CONTAINING_RECORD(irp, struct pending, irp);
  ULONG_PTR bytes = irp->IoStatus.Information;
  UNREFERENCED_PARAMETER(boost);
  if (InterlockedIncrement(&pending->completions) != 1) fail_test("IoCompleteRequest(): a second time\n");
  if (irp->CancelRoutine != NULL) fail_test("IoCompleteRequest(): with a cancel routine\n");
  if (bytes > pending->room && bytes != 0) fail_test("IoCompleteRequest(): more output than room\n");
  if (pending->method == METHOD_BUFFERED && !NT_ERROR(irp->IoStatus.Status) && bytes != 0)
    memcpy(pending->out, irp->AssociatedIrp.SystemBuffer, bytes);
  host_set(pending->ended);
}

static void take_buffers(struct pending* pending, const void* in, uint32_t in_bytes, uint32_t room) {
  bool buffered = pending->method == METHOD_BUFFERED;
  size_t bytes = in_bytes > room || !buffered ? in_bytes : room;
  if (bytes != 0) pending->irp.AssociatedIrp.SystemBuffer = malloc(bytes);
  if (in_bytes != 0) memcpy(pending->irp.AssociatedIrp.SystemBuffer, in, in_bytes);
  if (!buffered && room != 0) pending->irp.MdlAddress = IoAllocateMdl(pending->out, room, FALSE, FALSE, NULL);
}

static struct pending* make_request(struct handle* handle, UCHAR major) {
  struct pending* pending = calloc(1, sizeof(*pending));
  pending->ended = host_make_event();
  pending->location.MajorFunction = major;
  pending->location.FileObject = &handle->file;
  pending->location.DeviceObject = device_object;
  pending->irp.Tail.Overlay.CurrentStackLocation = &pending->location;
  pending->irp.CurrentLocation = 1;
  pending->irp.StackCount = 1;
  pending->irp.RequestorMode = UserMode;
  return pending;
}

static void send(struct pending* pending) {
  NTSTATUS status = driver.MajorFunction[pending->location.MajorFunction](device_object, &pending->irp);
  bool is_marked = pending->location.Control & SL_PENDING_RETURNED;
  if ((status == STATUS_PENDING) != is_marked)
    fail_test("a request that pends is not marked, or the reverse\n");
  if (status != STATUS_PENDING && status != pending->irp.IoStatus.Status)
    fail_test("a request has another status than its dispatch routine\n");
}

void* device_begin(void* device, uint32_t code, const void* in, uint32_t in_bytes, void* out, uint32_t room) {
  struct pending* pending = make_request(device, IRP_MJ_DEVICE_CONTROL);
  pending->out = out;
  pending->room = room;
  pending->method = code & 3;
  pending->location.Parameters.DeviceIoControl.IoControlCode = code;
  pending->location.Parameters.DeviceIoControl.InputBufferLength = in_bytes;
  pending->location.Parameters.DeviceIoControl.OutputBufferLength = room;
  take_buffers(pending, in, in_bytes, room);
  send(pending);
  return pending;
}

/* IoCancelIrp() */
void device_cancel(void* request) {
  struct pending* pending = request;
  KIRQL irql;
  IoAcquireCancelSpinLock(&irql);
  pending->irp.Cancel = TRUE;
  PDRIVER_CANCEL routine = InterlockedExchangePointer((PVOID*)&pending->irp.CancelRoutine, NULL);
  if (routine == NULL) {
    IoReleaseCancelSpinLock(irql);
    return;
  }
  pending->irp.CancelIrql = irql;
  routine(device_object, &pending->irp); /* releases the lock */
}

int32_t device_finish(void* request, uint32_t most_ms, uint32_t* got) {
  struct pending* pending = request;
  if (!host_wait(pending->ended, most_ms)) return DEVICE_PENDING;
  NTSTATUS status = pending->irp.IoStatus.Status;
  if (got != NULL) *got = NT_ERROR(status) ? 0 : (uint32_t)pending->irp.IoStatus.Information;
  free(pending->irp.AssociatedIrp.SystemBuffer);
  if (pending->irp.MdlAddress != NULL) IoFreeMdl(pending->irp.MdlAddress);
  host_end_event(pending->ended);
  free(pending);
  return status;
}

int32_t device_request(void* device, uint32_t code, const void* in, uint32_t in_bytes, void* out,
                       uint32_t room, uint32_t* got) {
  return device_finish(device_begin(device, code, in, in_bytes, out, room), 0xfffffff, got);
}

static NTSTATUS send_and_wait(struct handle* handle, UCHAR major) {
  struct pending* pending = make_request(handle, major);
  send(pending);
  return device_finish(pending, 0xfffffff, NULL);
}

void* device_open(void) {
  if (device_object == NULL) return NULL;
  struct handle* handle = calloc(1, sizeof(*handle));
  handle->file.DeviceObject = device_object;
  if (NT_SUCCESS(send_and_wait(handle, IRP_MJ_CREATE))) return handle;
  free(handle);
  return NULL;
}

/* Requests that pend end by themselves, or by device_cancel(). */
void device_close(void* device) {
  send_and_wait(device, IRP_MJ_CLEANUP);
  send_and_wait(device, IRP_MJ_CLOSE);
  free(device);
}

static NTSTATUS NTAPI refuse(PDEVICE_OBJECT object, PIRP irp) {
  UNREFERENCED_PARAMETER(object);
  irp->IoStatus.Status = STATUS_INVALID_DEVICE_REQUEST;
  irp->IoStatus.Information = 0;
  IofCompleteRequest(irp, 0);
  return STATUS_INVALID_DEVICE_REQUEST;
}

int32_t driver_load(void) { return driver_load_with(NULL, 0); }

int32_t driver_load_with(const struct model_set* sets, uint32_t count) {
  UNICODE_STRING path;
  if (cancel_lock == NULL) {
    cancel_lock = host_make_lock();
    dispatcher = host_make_lock();
    changed = host_make_event();
  }
  host_write_setup(sets, count * (uint32_t)sizeof(*sets));
  memset(&driver, 0, sizeof(driver));
  for (int i = 0; i <= IRP_MJ_MAXIMUM_FUNCTION; i++) driver.MajorFunction[i] = refuse;
  RtlInitUnicodeString(&path, L"\\Registry\\Machine\\System\\CurrentControlSet\\Services\\ptkit");
  return TestEntry(&driver, &path);
}

/* A driver without an unload routine stays. */
int32_t driver_unload(void) {
  if (driver.DriverUnload == NULL) return STATUS_INVALID_DEVICE_REQUEST;
  driver.DriverUnload(&driver);
  return device_object == NULL ? 0 : STATUS_DEVICE_BUSY;
}
