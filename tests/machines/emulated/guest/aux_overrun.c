// SPDX-License-Identifier: MIT
// Whether Linux overwrites AUX data that the reader has not read: aux_overrun ROOM. The reader consumes the
// data of a first stretch only. A long stretch begins when less than ROOM bytes are free. The program prints
// the reader's position, the writer's position before and after the long stretch, and the flags of its AUX
// records.
#define _GNU_SOURCE
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PAGE = 4096, AUX_BYTES = 4 * PAGE, DATA_BYTES = 16 * PAGE };

static struct perf_event_mmap_page* header;
static int event;

static void must(int good, const char* what) {
  if (good) return;
  perror(what);
  exit(1);
}

static int event_type(void) {
  int type = -1;
  FILE* const file = fopen("/sys/bus/event_source/devices/intel_pt/type", "r");
  must(file != NULL && fscanf(file, "%d", &type) == 1, "no intel_pt");
  fclose(file);
  return type;
}

static void open_event(void) {
  struct perf_event_attr attr = {
      .type = (unsigned int)event_type(),
      .size = sizeof(attr),
      .disabled = 1,
      .exclude_kernel = 1,
      .aux_watermark = PAGE,
      .sample_period = 1,
  };
  event = (int)syscall(SYS_perf_event_open, &attr, 0, -1, -1, 0);
  must(event >= 0, "perf_event_open");
  header = mmap(NULL, PAGE + DATA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, event, 0);
  must(header != MAP_FAILED, "mmap");
  header->aux_offset = PAGE + DATA_BYTES;
  header->aux_size = AUX_BYTES;
  const void* const aux = mmap(NULL, AUX_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, event, PAGE + DATA_BYTES);
  must(aux != MAP_FAILED, "mmap of AUX");
}

// Traces so many branches; where the writer stands then.
static unsigned long long stretch(int branches) {
  volatile unsigned int number = 12345;
  must(ioctl(event, PERF_EVENT_IOC_ENABLE, 0) == 0, "enable");
  for (int i = 0; i < branches; i++)
    if ((number = number * 1664525 + 1013904223) >> 31) number++;
  must(ioctl(event, PERF_EVENT_IOC_DISABLE, 0) == 0, "disable");
  return __atomic_load_n(&header->aux_head, __ATOMIC_ACQUIRE);
}

// Flags of the AUX records from there on.
static unsigned long long flags_from(unsigned long long position) {
  const char* const data = (const char*)header + PAGE;
  unsigned long long flags = 0;
  while (position < header->data_head) {
    const struct perf_event_header* const record = (const void*)(data + position);
    if (record->type == PERF_RECORD_AUX) flags |= ((const unsigned long long*)(record + 1))[2];
    position += record->size;
  }
  return flags;
}

int main(int count, char** words) {
  const unsigned long long room = count > 1 ? strtoull(words[1], NULL, 0) : 0;
  open_event();
  const unsigned long long tail = stretch(1);
  unsigned long long head = tail;
  __atomic_store_n(&header->aux_tail, tail, __ATOMIC_RELEASE);
  while (head <= tail + AUX_BYTES - room) head = stretch(1);
  const unsigned long long records = header->data_head;
  const unsigned long long end = stretch(400000);
  must(header->data_head <= DATA_BYTES, "records lost");
  printf("read %#llx wrote %#llx then %#llx flags %#llx\n", tail, head, end, flags_from(records));
  return 0;
}
