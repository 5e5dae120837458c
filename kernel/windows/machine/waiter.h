/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* A request that waits for events, and the events that no request has reported yet. */
#ifndef PTKIT_WINDOWS_WAITER_H
#define PTKIT_WINDOWS_WAITER_H

#include <ntddk.h>

#include <stdint.h>

struct ptkit_waiter {
	KDPC dpc;
	volatile LONG reported; /* PTKIT_EVENT_*, for the DPC */
	KSPIN_LOCK lock; /* guards the rest */
	uint32_t events;
	PIRP irp; /* that waits, or null */
};

void ptkit_waiter_init(struct ptkit_waiter *waiter);
/* At any level. */
void ptkit_report(struct ptkit_waiter *waiter, uint32_t events);
/*
 * Takes a request with the output struct ptkit_windows_wait. STATUS_PENDING: it is completed later.
 * STATUS_SUCCESS: the output is there. STATUS_DEVICE_BUSY: another one waits.
 */
NTSTATUS ptkit_wait(struct ptkit_waiter *waiter, PIRP irp);
/* Forgets all events: a new trace begins. PASSIVE_LEVEL. */
void ptkit_waiter_reset(struct ptkit_waiter *waiter);
/* Ends the request that waits. No DPC runs afterwards unless more events are reported. */
void ptkit_waiter_end(struct ptkit_waiter *waiter);

#endif /* PTKIT_WINDOWS_WAITER_H */
