/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Keeps perf's intel_pt away from trace units that the driver uses, and the driver from perf's. */
#ifndef PTKIT_LINUX_RESERVE_H
#define PTKIT_LINUX_RESERVE_H

#include <linux/types.h>

struct perf_event;

/* An event of a processor that never counts: it only keeps others out. Null: perf refused it. */
struct perf_event *ptkit_make_event(u32 type, u64 config, unsigned int cpu);

/* Looks perf's PMU up. Where it is not registered, nothing is reserved. */
void ptkit_reserve_init(void);
bool ptkit_reserve_needed(void);

/* The caller holds the lock of units.c and cpus_read_lock(), or is a callback of hotplug. */
void ptkit_reserve(unsigned int cpu);
void ptkit_unreserve(unsigned int cpu);
/* For the present users, when the processor came online, and before it goes offline. */
void ptkit_reserve_renew(unsigned int cpu);
void ptkit_reserve_drop(unsigned int cpu);
/* Whether perf has the unit: the processor must not be traced. */
bool ptkit_is_refused(unsigned int cpu);

#endif /* PTKIT_LINUX_RESERVE_H */
