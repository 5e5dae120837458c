/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Who may open the device. */
#ifndef PTKIT_WINDOWS_SECURITY_H
#define PTKIT_WINDOWS_SECURITY_H

#include <ntddk.h>

/* Gives administrators and the system all access, and all others none. */
NTSTATUS ptkit_secure_device(PDEVICE_OBJECT device);

#endif /* PTKIT_WINDOWS_SECURITY_H */
