// SPDX-License-Identifier: GPL-2.0 OR MIT
#include <ntddk.h>

#include "session/device.h"

#include "machine/pool.h"
#include "session/requests.h"
#include "session/security.h"
#include "unit/units.h"

static const UNICODE_STRING device_name = RTL_CONSTANT_STRING(L"\\Device\\ptkit");
static const UNICODE_STRING link_name = RTL_CONSTANT_STRING(L"\\DosDevices\\ptkit");

static NTSTATUS complete(PIRP irp, NTSTATUS status)
{
	irp->IoStatus.Status = status;
	irp->IoStatus.Information = 0;
	IoCompleteRequest(irp, IO_NO_INCREMENT);
	return status;
}

static struct ptkit_session *session_of(PIRP irp)
{
	return IoGetCurrentIrpStackLocation(irp)->FileObject->FsContext;
}

/* The device has no files: names below it are refused. */
static NTSTATUS NTAPI on_create(PDEVICE_OBJECT device, PIRP irp)
{
	PFILE_OBJECT file = IoGetCurrentIrpStackLocation(irp)->FileObject;
	struct ptkit_session *session;

	UNREFERENCED_PARAMETER(device);
	if (file->FileName.Length)
		return complete(irp, STATUS_OBJECT_NAME_NOT_FOUND);
	session = ptkit_allocate(sizeof(*session));
	if (!session)
		return complete(irp, STATUS_INSUFFICIENT_RESOURCES);
	ptkit_session_init(session);
	file->FsContext = session;
	return complete(irp, STATUS_SUCCESS);
}

static void close_session(struct ptkit_session *session)
{
	KeWaitForSingleObject(&session->lock, Executive, KernelMode, FALSE, NULL);
	ptkit_session_close(session);
	KeReleaseMutex(&session->lock, FALSE);
}

/* The last handle is closed, by the client or by its end. Requests may still be there. */
static NTSTATUS NTAPI on_cleanup(PDEVICE_OBJECT device, PIRP irp)
{
	UNREFERENCED_PARAMETER(device);
	close_session(session_of(irp));
	return complete(irp, STATUS_SUCCESS);
}

/*
 * No request is there any more. A unit that could not be stopped may still interrupt: then the
 * driver stays loaded.
 */
static NTSTATUS NTAPI on_close(PDEVICE_OBJECT device, PIRP irp)
{
	struct ptkit_session *session = session_of(irp);

	close_session(session);
	ptkit_free(session);
	if (ptkit_units_abandoned())
		device->DriverObject->DriverUnload = NULL;
	return complete(irp, STATUS_SUCCESS);
}

static NTSTATUS NTAPI on_control(PDEVICE_OBJECT device, PIRP irp)
{
	UNREFERENCED_PARAMETER(device);
	return ptkit_serve_request(session_of(irp), irp);
}

/* The machine goes down, or hibernates to start faster: memory will be another system's. */
static NTSTATUS NTAPI on_shutdown(PDEVICE_OBJECT device, PIRP irp)
{
	UNREFERENCED_PARAMETER(device);
	ptkit_units_sleep();
	return complete(irp, STATUS_SUCCESS);
}

static NTSTATUS make_device(PDRIVER_OBJECT driver, PDEVICE_OBJECT *device)
{
	UNICODE_STRING name = device_name;
	UNICODE_STRING link = link_name;
	NTSTATUS status = IoCreateDevice(driver, 0, &name, FILE_DEVICE_UNKNOWN,
					 FILE_DEVICE_SECURE_OPEN, FALSE, device);

	if (!NT_SUCCESS(status))
		return status;
	/* DO_DEVICE_INITIALIZING is set until DriverEntry() returns: no program opens the device
	 * before. */
	status = ptkit_secure_device(*device);
	if (NT_SUCCESS(status))
		status = IoRegisterShutdownNotification(*device);
	if (!NT_SUCCESS(status)) {
		IoDeleteDevice(*device);
		return status;
	}
	status = IoCreateSymbolicLink(&link, &name);
	if (!NT_SUCCESS(status)) {
		IoUnregisterShutdownNotification(*device);
		IoDeleteDevice(*device);
	}
	return status;
}

NTSTATUS ptkit_device_make(PDRIVER_OBJECT driver)
{
	PDEVICE_OBJECT device;

	driver->MajorFunction[IRP_MJ_CREATE] = on_create;
	driver->MajorFunction[IRP_MJ_CLEANUP] = on_cleanup;
	driver->MajorFunction[IRP_MJ_CLOSE] = on_close;
	driver->MajorFunction[IRP_MJ_DEVICE_CONTROL] = on_control;
	driver->MajorFunction[IRP_MJ_SHUTDOWN] = on_shutdown;
	return make_device(driver, &device);
}

void ptkit_device_delete(PDRIVER_OBJECT driver)
{
	UNICODE_STRING link = link_name;

	IoDeleteSymbolicLink(&link);
	IoUnregisterShutdownNotification(driver->DeviceObject);
	IoDeleteDevice(driver->DeviceObject);
}
