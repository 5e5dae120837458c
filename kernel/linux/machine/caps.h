/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The capabilities that all processors have, as read when the module is loaded. */
#ifndef PTKIT_LINUX_CAPS_H
#define PTKIT_LINUX_CAPS_H

#include <linux/types.h>

#include "common/pt_processor.h"

extern struct ptkit_caps ptkit_caps;

/* -ENODEV if a processor has no Processor Trace. */
int ptkit_read_caps(struct ptkit_caps *caps);
/* On a processor that came online later: whether CPUID has all of them there, too. */
bool ptkit_caps_hold(void);

#endif /* PTKIT_LINUX_CAPS_H */
