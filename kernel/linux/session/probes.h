/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Probes of the scheduler's tracepoints: one for each, which serves all sessions. */
#ifndef PTKIT_LINUX_PROBES_H
#define PTKIT_LINUX_PROBES_H

#include <linux/bits.h>
#include <linux/types.h>

#define PTKIT_ON_SWITCH BIT(0)
#define PTKIT_ON_FORK BIT(1)
#define PTKIT_ON_EXEC BIT(2)
#define PTKIT_ON_EXIT BIT(3)
#define PTKIT_ON_FREE BIT(4)

/* Looks the tracepoints up. */
void ptkit_probes_init(void);
/* Whether the kernel has all of them. */
bool ptkit_probes_available(void);
/* Registers the `wanted` probes, until ptkit_probes_end() with the same ones. */
int ptkit_probes_begin(unsigned int wanted);
/* Waits until all probes that run have returned. */
void ptkit_probes_end(unsigned int wanted);
/* Whether any probe is registered. */
bool ptkit_probes_any(void);

#endif /* PTKIT_LINUX_PROBES_H */
