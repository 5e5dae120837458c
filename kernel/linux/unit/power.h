/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Suspend and resume of the machine. */
#ifndef PTKIT_LINUX_POWER_H
#define PTKIT_LINUX_POWER_H

void ptkit_power_init(void);
void ptkit_power_exit(void);

#endif /* PTKIT_LINUX_POWER_H */
