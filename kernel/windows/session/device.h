/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The device \\.\ptkit: an open handle is a session. */
#ifndef PTKIT_WINDOWS_DEVICE_H
#define PTKIT_WINDOWS_DEVICE_H

#include <ntddk.h>

NTSTATUS ptkit_device_make(PDRIVER_OBJECT driver);
void ptkit_device_delete(PDRIVER_OBJECT driver);

#endif /* PTKIT_WINDOWS_DEVICE_H */
