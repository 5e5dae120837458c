/* SPDX-License-Identifier: MIT */
/* Reads the sideband of a session. */
#ifndef PTKIT_TESTS_KERNEL_RECORDS_H
#define PTKIT_TESTS_KERNEL_RECORDS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ptkit/ptkit_ioctl.h"

/* Any record. */
union record {
  struct ptkit_record head;
  struct ptkit_record_space space;
  struct ptkit_record_fork fork;
  struct ptkit_record_exit exit;
  struct ptkit_record_module module;
  struct ptkit_record_lost lost;
  uint8_t bytes[sizeof(struct ptkit_record_module)]; /* the largest one */
};

struct records {
  union record* all;
  size_t count;
};

/* All that is in the ring of a processor, and gives its room back; adds to what there is. */
void read_ring(int session, uint32_t cpu, struct records* records);
/* Of both processors, by time. */
struct records read_rings(int session);
void free_records(struct records* records);
/* The first record from `from` on of that type, and thread, unless that is 0; its index, or the count. */
size_t find_record(const struct records* records, size_t from, uint16_t type, int32_t tid);

#endif /* PTKIT_TESTS_KERNEL_RECORDS_H */
