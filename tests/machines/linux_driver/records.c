// SPDX-License-Identifier: MIT
#include "records.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "check.h"
#include "machine.h"

static void add_record(struct records* records, const uint8_t* ring, uint64_t bytes, uint64_t offset) {
  if (records->count % 1024 == 0)
    records->all = realloc(records->all, (records->count + 1024) * sizeof(union record));
  union record* record = &records->all[records->count++];
  memset(record, 0, sizeof(*record));
  for (size_t i = 0; i < sizeof(record->head); i++) record->bytes[i] = ring[(offset + i) % bytes];
  CHECK(record->head.size <= sizeof(*record));
  for (size_t i = 0; i < record->head.size && i < sizeof(*record); i++)
    record->bytes[i] = ring[(offset + i) % bytes];
}

/* Properties of any record. */
static void check_record(const union record* record, uint64_t since) {
  static const size_t sizes[] = {
      [PTKIT_RECORD_SWITCH] = sizeof(struct ptkit_record_space),
      [PTKIT_RECORD_FORK] = sizeof(struct ptkit_record_fork),
      [PTKIT_RECORD_EXEC] = sizeof(struct ptkit_record_space),
      [PTKIT_RECORD_EXIT] = sizeof(struct ptkit_record_exit),
      [PTKIT_RECORD_SPACE] = sizeof(struct ptkit_record_space),
      [PTKIT_RECORD_LOST] = sizeof(struct ptkit_record_lost),
      [PTKIT_RECORD_MODULE] = sizeof(struct ptkit_record_module),
      [PTKIT_RECORD_MODULE_GONE] = sizeof(struct ptkit_record_module),
  };
  const struct ptkit_record* head = &record->head;
  CHECK(head->type < sizeof(sizes) / sizeof(sizes[0]) && sizes[head->type] != 0);
  CHECK_EQUAL(head->size % 8, 0);
  CHECK(head->tsc >= since);
  CHECK_EQUAL(head->size, sizes[head->type]);
}

void read_ring(int session, uint32_t cpu, struct records* records) {
  struct ptkit_buffer buffer = {.cpu = cpu};
  struct ptkit_status status = status_of(session, cpu);
  CHECK_EQUAL(ioctl(session, PTKIT_BUFFER, &buffer), 0);
  const uint8_t* ring =
      mmap(NULL, buffer.sideband_bytes, PROT_READ, MAP_SHARED, session, (off_t)buffer.sideband_offset);
  CHECK(ring != MAP_FAILED);
  uint64_t offset = status.sideband_tail;
  uint64_t since = 0;
  CHECK(status.sideband_head - offset <= buffer.sideband_bytes);
  while (failures == 0 && offset != status.sideband_head) {
    add_record(records, ring, buffer.sideband_bytes, offset);
    const union record* record = &records->all[records->count - 1];
    check_record(record, since);
    since = record->head.tsc;
    offset += record->head.size;
  }
  munmap((void*)ring, buffer.sideband_bytes);
  struct ptkit_consume consume = {.cpu = cpu, .sideband_tail = status.sideband_head};
  CHECK_EQUAL(ioctl(session, PTKIT_CONSUME, &consume), 0);
}

static int by_time(const void* left, const void* right) {
  const union record* first = left;
  const union record* second = right;
  return (first->head.tsc > second->head.tsc) - (first->head.tsc < second->head.tsc);
}

struct records read_rings(int session) {
  struct records records = {NULL, 0};
  for (uint32_t cpu = 0; cpu < 2; cpu++) {
    size_t i = records.count;
    read_ring(session, cpu, &records);
    for (; i < records.count; i++) CHECK_EQUAL(records.all[i].head.cpu, cpu);
  }
  qsort(records.all, records.count, sizeof(*records.all), by_time);
  return records;
}

void free_records(struct records* records) { free(records->all); }

size_t find_record(const struct records* records, size_t from, uint16_t type, int32_t tid) {
  for (; from < records->count; from++) {
    const struct ptkit_record* head = &records->all[from].head;
    if (head->type == type && (tid == 0 || head->tid == tid)) break;
  }
  return from;
}
