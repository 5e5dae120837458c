// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The device has no hardware and no device node, so it gets no power requests. The callback object
 * \Callback\PowerState tells of the way to sleep before any device sleeps, and of the way back
 * after all of them are awake.
 */
#include <ntddk.h>

#include "unit/power.h"
#include "unit/units.h"

static PCALLBACK_OBJECT object;
static PVOID registration;

/* PO_CB_SYSTEM_STATE_LOCK: with 0 the machine leaves the working state, with 1 it has come back. */
static VOID NTAPI on_power(PVOID context, PVOID what, PVOID value)
{
	UNREFERENCED_PARAMETER(context);
	if ((ULONG_PTR)what != PO_CB_SYSTEM_STATE_LOCK)
		return;
	if (value)
		ptkit_units_wake_up();
	else
		ptkit_units_sleep();
}

void ptkit_power_init(void)
{
	UNICODE_STRING name = RTL_CONSTANT_STRING(L"\\Callback\\PowerState");
	OBJECT_ATTRIBUTES attributes;

	InitializeObjectAttributes(&attributes, &name, OBJ_CASE_INSENSITIVE | OBJ_KERNEL_HANDLE,
				   NULL, NULL);
	if (!NT_SUCCESS(ExCreateCallback(&object, &attributes, FALSE, TRUE)))
		return;
	registration = ExRegisterCallback(object, on_power, NULL);
}

void ptkit_power_exit(void)
{
	if (registration)
		ExUnregisterCallback(registration);
	if (object)
		ObDereferenceObject(object);
}
