/* SPDX-License-Identifier: MIT */
/*
 * Calls kernel/windows/machine/msr.S from a user program, where each access of a register faults: the table of
 * the handler leads to the end that reports it. The loop shows that stack and registers are as before.
 */
#include <stdint.h>
#include <stdio.h>

#include "machine/msr.h"

int main(void) {
  uint64_t value = 0x0123456789abcdef;
  int reads = 0;
  int writes = 0;
  for (uint32_t i = 0; i < 1000; i++) {
    reads += ptkit_read_msr(0x570 + i, &value);
    writes += ptkit_write_msr(0x570 + i, value + i);
  }
  printf("%d %d %llx\n", reads, writes, (unsigned long long)value);
  return 0;
}
