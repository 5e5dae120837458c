/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Sleep of the machine: registers are lost, and memory may be another system's after hibernation.
 */
#ifndef PTKIT_WINDOWS_POWER_H
#define PTKIT_WINDOWS_POWER_H

void ptkit_power_init(void);
void ptkit_power_exit(void);

#endif /* PTKIT_WINDOWS_POWER_H */
