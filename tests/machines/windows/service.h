/* SPDX-License-Identifier: MIT */
/* Drivers as services of kind SERVICE_KERNEL_DRIVER, and their devices. */
#ifndef PTKIT_TESTS_WINDOWS_SERVICE_H
#define PTKIT_TESTS_WINDOWS_SERVICE_H

#include <windows.h>

/* Installs the file as a service of this name, and starts it. 0, or an error of Windows. */
DWORD load_driver(const char* name, const char* file);
/* Stops the service, waits until it is stopped, and removes it. 0, or an error of Windows. */
DWORD unload_driver(const char* name);
/* \\.\name; INVALID_HANDLE_VALUE with GetLastError(). */
HANDLE open_named_device(const char* name);

#endif /* PTKIT_TESTS_WINDOWS_SERVICE_H */
