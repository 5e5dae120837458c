/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The capabilities that all processors have, as read when the driver is loaded. */
#ifndef PTKIT_WINDOWS_CAPS_H
#define PTKIT_WINDOWS_CAPS_H

#include "common/pt_processor.h"

struct ptkit_machine_caps {
	struct ptkit_caps caps;
	uint32_t tsc_khz;
	uint32_t system; /* PTKIT_SYSTEM_*, without those of interrupts */
	uint32_t reason; /* PTKIT_REASON_*: why nothing can be traced, or 0 */
};

extern struct ptkit_machine_caps ptkit_machine_caps;

void ptkit_read_caps(void);

#endif /* PTKIT_WINDOWS_CAPS_H */
