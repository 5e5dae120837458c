// SPDX-License-Identifier: MIT
#include "service.h"

#include <stdio.h>

#define MOST_WAIT_MS 10000
#define MOST_STARTS 5

/* Wine starts a process for the first driver. If that process ends before it has begun, which happens once in
 * thousands of times on a busy machine, the error is ERROR_INTERNAL_ERROR; no driver gives that. */
static DWORD begin(SC_HANDLE service) {
  DWORD error = ERROR_INTERNAL_ERROR;
  for (int starts = 0; error == ERROR_INTERNAL_ERROR && starts < MOST_STARTS; starts++)
    error = StartServiceA(service, 0, NULL) ? 0 : GetLastError();
  if (error != 0) DeleteService(service);
  return error;
}

DWORD load_driver(const char* name, const char* file) {
  char path[MAX_PATH];
  if (GetFullPathNameA(file, sizeof(path), path, NULL) == 0) return GetLastError();
  SC_HANDLE manager = OpenSCManagerA(NULL, NULL, SC_MANAGER_ALL_ACCESS);
  if (manager == NULL) return GetLastError();
  SC_HANDLE service =
      CreateServiceA(manager, name, name, SERVICE_ALL_ACCESS, SERVICE_KERNEL_DRIVER, SERVICE_DEMAND_START,
                     SERVICE_ERROR_NORMAL, path, NULL, NULL, NULL, NULL, NULL);
  DWORD error = service == NULL ? GetLastError() : begin(service);
  if (service != NULL) CloseServiceHandle(service);
  CloseServiceHandle(manager);
  return error;
}

static DWORD end(SC_HANDLE service) {
  SERVICE_STATUS status;
  if (!ControlService(service, SERVICE_CONTROL_STOP, &status)) return GetLastError();
  for (DWORD waited = 0; waited < MOST_WAIT_MS; waited += 10) {
    if (!QueryServiceStatus(service, &status)) return GetLastError();
    if (status.dwCurrentState == SERVICE_STOPPED) return DeleteService(service) ? 0 : GetLastError();
    Sleep(10);
  }
  return ERROR_TIMEOUT;
}

DWORD unload_driver(const char* name) {
  SC_HANDLE manager = OpenSCManagerA(NULL, NULL, SC_MANAGER_ALL_ACCESS);
  if (manager == NULL) return GetLastError();
  SC_HANDLE service = OpenServiceA(manager, name, SERVICE_ALL_ACCESS);
  DWORD error = service == NULL ? GetLastError() : end(service);
  if (service != NULL) CloseServiceHandle(service);
  CloseServiceHandle(manager);
  return error;
}

HANDLE open_named_device(const char* name) {
  char path[MAX_PATH];
  snprintf(path, sizeof(path), "\\\\.\\%s", name);
  return CreateFileA(path, GENERIC_READ | GENERIC_WRITE, 0, NULL, OPEN_EXISTING, 0, NULL);
}
