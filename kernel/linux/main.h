/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* The module as a whole. */
#ifndef PTKIT_LINUX_MAIN_H
#define PTKIT_LINUX_MAIN_H

#include <linux/types.h>

/* Whether any session owns a trace unit, or has a probe of a tracepoint or an entry of a list. */
bool ptkit_in_use(void);

#endif /* PTKIT_LINUX_MAIN_H */
