/* SPDX-License-Identifier: MIT */
/* The driver's device: Windows' in Wine (device_windows.c), or that of a small kernel (kernel/ntoskrnl.c). */
#ifndef PTKIT_TESTS_WINDOWS_DEVICE_H
#define PTKIT_TESTS_WINDOWS_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef CTL_CODE /* in the kernel */
#elif defined(_WIN32)
#include <windows.h>
#include <winioctl.h>
#else
#define CTL_CODE(type, function, method, access) ((type) << 16 | (access) << 14 | (function) << 2 | (method))
#define METHOD_BUFFERED 0
#define METHOD_OUT_DIRECT 2
#define FILE_READ_DATA 1
#define FILE_WRITE_DATA 2
#endif

/* Statuses of NT, as the kernel has them: documents of Microsoft, "NTSTATUS Values". */
enum device_status {
  DEVICE_SUCCESS = 0,
  DEVICE_PENDING = 0x103,
  DEVICE_BUFFER_OVERFLOW = (int32_t)0x80000005,
  DEVICE_BUSY = (int32_t)0x80000011,
  DEVICE_INFO_LENGTH_MISMATCH = (int32_t)0xc0000004,
  DEVICE_INVALID_PARAMETER = (int32_t)0xc000000d,
  DEVICE_INVALID_REQUEST = (int32_t)0xc0000010,
  DEVICE_PRIVILEGE_NOT_HELD = (int32_t)0xc0000061,
  DEVICE_NO_RESOURCES = (int32_t)0xc000009a,
  DEVICE_NOT_SUPPORTED = (int32_t)0xc00000bb,
  DEVICE_CANCELLED = (int32_t)0xc0000120,
  DEVICE_INVALID_STATE = (int32_t)0xc0000184,
  DEVICE_IO_ERROR = (int32_t)0xc0000185,
  DEVICE_NOT_FOUND = (int32_t)0xc0000225
};

/* 0, or an error of Windows or NT. */
int32_t driver_load(void);
/* ... and the model with these parameters, before the driver looks at it. */
struct model_set;
int32_t driver_load_with(const struct model_set* sets, uint32_t count);
int32_t driver_unload(void);

/* Null: it cannot be opened. */
void* device_open(void);
void device_close(void* device);

/* Waits until the request has ended; its status. `got`: bytes of output; may be null. */
int32_t device_request(void* device, uint32_t code, const void* in, uint32_t in_bytes, void* out,
                       uint32_t room, uint32_t* got);

/* A request that may pend; `out` stays until device_finish(). */
void* device_begin(void* device, uint32_t code, const void* in, uint32_t in_bytes, void* out, uint32_t room);
void device_cancel(void* request);
/* Its status, or DEVICE_PENDING if it pends still; otherwise the request is freed. */
int32_t device_finish(void* request, uint32_t most_ms, uint32_t* got);

#endif /* PTKIT_TESTS_WINDOWS_DEVICE_H */
