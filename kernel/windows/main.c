// SPDX-License-Identifier: GPL-2.0 OR MIT
/* Loads and unloads the driver. */
#include <ntddk.h>

#include "machine/caps.h"
#include "session/device.h"
#include "sideband/sideband.h"
#include "unit/power.h"
#include "unit/units.h"

DRIVER_INITIALIZE DriverEntry;

/* Windows unloads a driver when no handle is open. */
static VOID NTAPI unload(PDRIVER_OBJECT driver)
{
	ptkit_device_delete(driver);
	ptkit_power_exit();
	ptkit_sideband_exit();
	ptkit_units_exit();
}

NTSTATUS NTAPI DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING registry)
{
	NTSTATUS status;

	UNREFERENCED_PARAMETER(registry);
	ptkit_read_caps();
	if (!ptkit_units_init())
		return STATUS_INSUFFICIENT_RESOURCES;
	if (!ptkit_sideband_init()) {
		ptkit_units_exit();
		return STATUS_INSUFFICIENT_RESOURCES;
	}
	ptkit_power_init();
	status = ptkit_device_make(driver);
	if (!NT_SUCCESS(status)) {
		ptkit_power_exit();
		ptkit_sideband_exit();
		ptkit_units_exit();
		return status;
	}
	driver->DriverUnload = unload;
	return STATUS_SUCCESS;
}
