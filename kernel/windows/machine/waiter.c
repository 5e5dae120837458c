// SPDX-License-Identifier: GPL-2.0 OR MIT
/*
 * The routine that has taken the cancel routine off a request completes it: the DPC, or the end of
 * the session. Otherwise cancellation does.
 */
#include "machine/waiter.h"

#include "ptkit/ptkit_windows.h"

static void complete(PIRP irp, NTSTATUS status, ULONG_PTR bytes)
{
	irp->IoStatus.Status = status;
	irp->IoStatus.Information = bytes;
	IoCompleteRequest(irp, IO_NO_INCREMENT);
}

/* The caller holds the lock. */
static void take_events(struct ptkit_waiter *waiter, PIRP irp)
{
	struct ptkit_windows_wait *wait = irp->AssociatedIrp.SystemBuffer;

	wait->events = waiter->events;
	wait->zero = 0;
	waiter->events = 0;
}

/* The request that waits, without its cancel routine; null: there is none. The caller holds the
 * lock. */
static PIRP take_request(struct ptkit_waiter *waiter)
{
	PIRP irp = waiter->irp;

	if (!irp || !IoSetCancelRoutine(irp, NULL))
		return NULL;
	waiter->irp = NULL;
	return irp;
}

static VOID NTAPI deliver(struct _KDPC *dpc, PVOID context, PVOID first, PVOID second)
{
	struct ptkit_waiter *waiter = context;
	PIRP irp = NULL;
	KIRQL level;

	UNREFERENCED_PARAMETER(dpc);
	UNREFERENCED_PARAMETER(first);
	UNREFERENCED_PARAMETER(second);
	KeAcquireSpinLock(&waiter->lock, &level);
	waiter->events |= (uint32_t)InterlockedExchange(&waiter->reported, 0);
	if (waiter->events)
		irp = take_request(waiter);
	if (irp)
		take_events(waiter, irp);
	KeReleaseSpinLock(&waiter->lock, level);
	if (irp)
		complete(irp, STATUS_SUCCESS, sizeof(struct ptkit_windows_wait));
}

static VOID NTAPI cancel(PDEVICE_OBJECT device, PIRP irp)
{
	struct ptkit_waiter *waiter = irp->Tail.Overlay.DriverContext[0];
	KIRQL level;

	UNREFERENCED_PARAMETER(device);
	IoReleaseCancelSpinLock(irp->CancelIrql);
	KeAcquireSpinLock(&waiter->lock, &level);
	if (waiter->irp == irp)
		waiter->irp = NULL;
	KeReleaseSpinLock(&waiter->lock, level);
	complete(irp, STATUS_CANCELLED, 0);
}

void ptkit_waiter_init(struct ptkit_waiter *waiter)
{
	KeInitializeSpinLock(&waiter->lock);
	KeInitializeDpc(&waiter->dpc, deliver, waiter);
}

void ptkit_report(struct ptkit_waiter *waiter, uint32_t events)
{
	InterlockedOr(&waiter->reported, (LONG)events);
	KeInsertQueueDpc(&waiter->dpc, NULL, NULL);
}

/* The caller holds the lock. */
static NTSTATUS enqueue(struct ptkit_waiter *waiter, PIRP irp)
{
	if (waiter->irp)
		return STATUS_DEVICE_BUSY;
	if (waiter->events) {
		take_events(waiter, irp);
		return STATUS_SUCCESS;
	}
	irp->Tail.Overlay.DriverContext[0] = waiter;
	IoSetCancelRoutine(irp, cancel);
	if (irp->Cancel && IoSetCancelRoutine(irp, NULL))
		return STATUS_CANCELLED;
	IoMarkIrpPending(irp);
	waiter->irp = irp;
	return STATUS_PENDING;
}

NTSTATUS ptkit_wait(struct ptkit_waiter *waiter, PIRP irp)
{
	NTSTATUS status;
	KIRQL level;

	KeAcquireSpinLock(&waiter->lock, &level);
	status = enqueue(waiter, irp);
	KeReleaseSpinLock(&waiter->lock, level);
	return status;
}

void ptkit_waiter_reset(struct ptkit_waiter *waiter)
{
	KIRQL level;

	KeFlushQueuedDpcs();
	KeAcquireSpinLock(&waiter->lock, &level);
	waiter->events = 0;
	KeReleaseSpinLock(&waiter->lock, level);
}

void ptkit_waiter_end(struct ptkit_waiter *waiter)
{
	PIRP irp;
	KIRQL level;

	KeFlushQueuedDpcs();
	KeAcquireSpinLock(&waiter->lock, &level);
	irp = take_request(waiter);
	KeReleaseSpinLock(&waiter->lock, level);
	if (irp)
		complete(irp, STATUS_CANCELLED, 0);
}
