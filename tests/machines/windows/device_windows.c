// SPDX-License-Identifier: MIT
#include <winternl.h>

#include "control.h"
#include "device.h"
#include "host.h"
#include "service.h"

#define SERVICE "ptkit"
#define DRIVER_FILE "ptkit-model.sys"

/* ntdll.dll */
NTSTATUS NTAPI NtCancelIoFileEx(HANDLE file, PIO_STATUS_BLOCK what, PIO_STATUS_BLOCK status);

struct pending {
  HANDLE device;
  HANDLE ended;
  IO_STATUS_BLOCK block;
  NTSTATUS status; /* of the call */
};

int32_t driver_load_with(const struct model_set* sets, uint32_t count) {
  host_write_setup(sets, count * sizeof(*sets));
  return (int32_t)load_driver(SERVICE, DRIVER_FILE);
}

int32_t driver_load(void) { return driver_load_with(NULL, 0); }

/* Windows unloads no driver that is not done with its closed handles; Wine does. What is still taken after so
 * long was not given back. */
static void wait_for_closed_handles(void) {
  void* device = device_open();
  if (device == NULL) return;
  for (DWORD waited = 0; waited < 10000; waited += 10) {
    struct model_counts counts;
    int32_t status = device_request(device, MODEL_COUNTS, NULL, 0, &counts, sizeof(counts), NULL);
    if (status != DEVICE_SUCCESS || (counts.runs == 0 && counts.mappings == 0 && counts.timers == 0)) break;
    Sleep(10);
  }
  device_close(device);
}

int32_t driver_unload(void) {
  wait_for_closed_handles();
  return (int32_t)unload_driver(SERVICE);
}

void* device_open(void) {
  HANDLE device = CreateFileA("\\\\.\\" SERVICE, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING,
                              FILE_FLAG_OVERLAPPED, NULL);
  return device == INVALID_HANDLE_VALUE ? NULL : device;
}

void device_close(void* device) { CloseHandle(device); }

void* device_begin(void* device, uint32_t code, const void* in, uint32_t in_bytes, void* out, uint32_t room) {
  struct pending* pending = HeapAlloc(GetProcessHeap(), HEAP_ZERO_MEMORY, sizeof(*pending));
  pending->device = device;
  pending->ended = CreateEventW(NULL, TRUE, FALSE, NULL);
  pending->status = NtDeviceIoControlFile(device, pending->ended, NULL, NULL, &pending->block, code,
                                          (void*)in, in_bytes, out, room);
  return pending;
}

void device_cancel(void* request) {
  struct pending* pending = request;
  IO_STATUS_BLOCK block;
  NtCancelIoFileEx(pending->device, &pending->block, &block);
}

int32_t device_finish(void* request, uint32_t most_ms, uint32_t* got) {
  struct pending* pending = request;
  NTSTATUS status = pending->status;
  if (status == DEVICE_PENDING) {
    if (WaitForSingleObject(pending->ended, most_ms) != WAIT_OBJECT_0) return DEVICE_PENDING;
    status = pending->block.Status;
  }
  if (got != NULL) *got = (uint32_t)pending->block.Information;
  CloseHandle(pending->ended);
  HeapFree(GetProcessHeap(), 0, pending);
  return status;
}

int32_t device_request(void* device, uint32_t code, const void* in, uint32_t in_bytes, void* out,
                       uint32_t room, uint32_t* got) {
  return device_finish(device_begin(device, code, in, in_bytes, out, room), INFINITE, got);
}
