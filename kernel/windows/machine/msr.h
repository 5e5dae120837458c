/* SPDX-License-Identifier: GPL-2.0 OR MIT */
/* Accesses of registers of the processor (msr.S). Not 0: the access faulted, and changed nothing.
 */
#ifndef PTKIT_WINDOWS_MSR_H
#define PTKIT_WINDOWS_MSR_H

#include <stdint.h>

int ptkit_read_msr(uint32_t msr, uint64_t *value);
int ptkit_write_msr(uint32_t msr, uint64_t value);

#endif /* PTKIT_WINDOWS_MSR_H */
