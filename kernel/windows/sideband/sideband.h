/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The sideband of a session: records of processes, threads and images. */
#ifndef PTKIT_WINDOWS_SIDEBAND_H
#define PTKIT_WINDOWS_SIDEBAND_H

#include "machine/waiter.h"
#include "sideband/ring.h"

struct ptkit_sideband {
	LIST_ENTRY entry;
	struct ptkit_ring ring;
	HANDLE process; /* records are of this process; null: of all */
	bool listening;
	struct ptkit_waiter *waiter; /* of the session */
};

/* Around everything. False: Windows has no room for another listener. */
bool ptkit_sideband_init(void);
void ptkit_sideband_exit(void);

/*
 * From now on records are written; the first ones are of what is there already. `process` and
 * `waiter` are set. Without a ring only the end of the process is reported. PASSIVE_LEVEL.
 */
void ptkit_sideband_start(struct ptkit_sideband *sideband);
void ptkit_sideband_stop(struct ptkit_sideband *sideband);

#endif /* PTKIT_WINDOWS_SIDEBAND_H */
