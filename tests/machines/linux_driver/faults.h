/* SPDX-License-Identifier: MIT */
/* Failures on purpose: of registers by the model, of memory by the kernel's fault injection. */
#ifndef PTKIT_TESTS_KERNEL_FAULTS_H
#define PTKIT_TESTS_KERNEL_FAULTS_H

#include <stdbool.h>

enum fault_kind {
  NO_FAULT,
  ONE_ACCESS,   /* of a register */
  ALL_ACCESSES, /* from that one on */
  ONE_STEP,     /* of what the kernel's fault injection knows: allocations, copies from and to user memory */
  FAULT_KINDS,
};

/* Makes ONE_STEP possible, silently. Whether it is: the kernel must have been built for it. */
bool prepare_faults(void);
/* The request that follows on this thread fails at its number-th access or step, from 1 on. */
void begin_fault(enum fault_kind kind, unsigned number);
/* Whether the request came that far. Nothing fails any more. */
bool end_fault(enum fault_kind kind);

#endif /* PTKIT_TESTS_KERNEL_FAULTS_H */
