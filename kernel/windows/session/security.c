// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The list of rights that IoCreateDeviceSecure() makes of "D:P(A;;GA;;;SY)(A;;GA;;;BA)". That
 * function is in a library of Microsoft's WDK that Debian does not have.
 */
#include <ntifs.h>

#include "machine/pool.h"
#include "session/security.h"

#define ACL_BYTES 256

/* S-1-5-18, and S-1-5-32-544. */
static SID system_sid = {SID_REVISION, 1, {SECURITY_NT_AUTHORITY}, {SECURITY_LOCAL_SYSTEM_RID}};
static struct {
	SID sid;
	ULONG second;
} administrators = {
	{SID_REVISION, 2, {SECURITY_NT_AUTHORITY}, {SECURITY_BUILTIN_DOMAIN_RID}},
	DOMAIN_ALIAS_RID_ADMINS,
};

static NTSTATUS fill(PSECURITY_DESCRIPTOR descriptor, PACL list)
{
	NTSTATUS status = RtlCreateSecurityDescriptor(descriptor, SECURITY_DESCRIPTOR_REVISION);

	if (NT_SUCCESS(status))
		status = RtlCreateAcl(list, ACL_BYTES, ACL_REVISION);
	if (NT_SUCCESS(status))
		status = RtlAddAccessAllowedAce(list, ACL_REVISION, FILE_ALL_ACCESS, &system_sid);
	if (NT_SUCCESS(status))
		status = RtlAddAccessAllowedAce(list, ACL_REVISION, FILE_ALL_ACCESS,
						&administrators.sid);
	if (NT_SUCCESS(status))
		status = RtlSetDaclSecurityDescriptor(descriptor, TRUE, list, FALSE);
	return status;
}

static NTSTATUS set_descriptor(PDEVICE_OBJECT device, PSECURITY_DESCRIPTOR descriptor)
{
	HANDLE handle;
	NTSTATUS status = ObOpenObjectByPointer(device, OBJ_KERNEL_HANDLE, NULL, WRITE_DAC, NULL,
						KernelMode, &handle);

	if (!NT_SUCCESS(status))
		return status;
	status = ZwSetSecurityObject(handle, DACL_SECURITY_INFORMATION, descriptor);
	ZwClose(handle);
	return status;
}

NTSTATUS ptkit_secure_device(PDEVICE_OBJECT device)
{
	SECURITY_DESCRIPTOR descriptor;
	PACL list = ptkit_allocate(ACL_BYTES);
	NTSTATUS status;

	if (!list)
		return STATUS_INSUFFICIENT_RESOURCES;
	status = fill(&descriptor, list);
	if (NT_SUCCESS(status))
		status = set_descriptor(device, &descriptor);
	ptkit_free(list);
	return status;
}
