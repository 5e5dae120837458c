// SPDX-License-Identifier: MIT
/* Interrupts that come at any moment: while requests write registers, between them, or too late. */
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cases.h"
#include "check.h"
#include "machine.h"

#define MOST_ACCESSES 40 /* of registers; no request makes so many */

struct reader {
  int session;
  const uint8_t* data;
  uint64_t bytes;
  uint64_t read;
  uint8_t last; /* value that was read; 0: none */
};

static void read_all(struct reader* reader) {
  uint64_t head = status_of(reader->session, 0).head;
  CHECK(head - reader->read <= reader->bytes);
  for (; reader->read < head && failures == 0; reader->read++) {
    uint8_t value = reader->data[reader->read % reader->bytes];
    if (reader->last != 0) CHECK_EQUAL(value, reader->last == 251 ? 1 : reader->last + 1);
    reader->last = value;
  }
  struct ptkit_consume consume = {.cpu = 0, .tail = reader->read};
  CHECK_EQUAL(ioctl(reader->session, PTKIT_CONSUME, &consume), 0);
}

static struct reader begin_with(uint64_t buffer_bytes, int stretch, bool eager, int after) {
  struct ptkit_config config = simple_config(0);
  struct reader reader = {0};
  config.wake_up_bytes = 4096; /* all regions are single pages */
  config.buffer_bytes = buffer_bytes;
  reader.session = open_session(config);
  reader.data = map_buffer(reader.session, 0, &reader.bytes);
  set_parameter("model_bytes", stretch);
  set_parameter("model_eager", eager);
  set_parameter("model_interrupt_after", after);
  CHECK_EQUAL(ioctl(reader.session, PTKIT_START), 0);
  return reader;
}

static struct reader begin(int stretch, bool eager, int after) {
  return begin_with(32768, stretch, eager, after);
}

static void end(struct reader* reader) {
  CHECK_EQUAL(ioctl(reader->session, PTKIT_STOP), 0);
  read_all(reader);
  munmap((void*)reader->data, reader->bytes);
  close(reader->session);
  set_parameter("model_registers", 0); /* no interrupt is on its way any more */
  set_parameter("model_interrupt_after", -1);
  set_parameter("model_interrupt_waits", 0);
  set_parameter("model_eager", 0);
  set_parameter("model_bytes", 5000);
}

/* Every stretch fills a region, so that an interrupt follows, and by that the next stretch: nobody else wakes
 * up the reader. */
void goes_on_by_interrupts_alone(void) {
  for (int after = 0; after < MOST_ACCESSES && failures == 0; after++) {
    struct reader reader = begin(9000, true, after);
    struct pollfd poll_it = {.fd = reader.session, .events = POLLIN};
    while (reader.read < 200000 && failures == 0) {
      CHECK_EQUAL(poll(&poll_it, 1, 5000), 1);
      read_all(&reader);
    }
    end(&reader);
    if (failures) printf("# after %d accesses\n", after);
  }
}

struct work {
  long accesses;
  long entries;
};

/*
 * The most that one interrupt does while 3 MiB, which are more than one table, are written. Three of
 * four stretches fill a page, so that an interrupt follows.
 */
static struct work work_with(uint64_t buffer_bytes) {
  set_parameter("model_most_accesses", 0);
  set_parameter("model_most_entries", 0);
  struct reader reader = begin_with(buffer_bytes, 3000, true, MOST_ACCESSES);
  while (reader.read < 3 << 20 && failures == 0) {
    CHECK_EQUAL(ioctl(reader.session, PTKIT_PAUSE), 0);
    CHECK_EQUAL(ioctl(reader.session, PTKIT_RESUME), 0);
    read_all(&reader);
  }
  end(&reader);
  return (struct work){read_number("/sys/module/ptkit/parameters/model_most_accesses", ""),
                       read_number("/sys/module/ptkit/parameters/model_most_entries", "")};
}

/* An NMI must not take long, and a buffer of single pages has the longest tables. */
void does_bounded_work_in_interrupts(void) {
  set_parameter("model_counts_work", 1);
  struct work small = work_with(4 << 20);
  struct work large = work_with(1 << 30);
  set_parameter("model_counts_work", 0);
  printf("# in all requests: an interrupt has %ld accesses, %ld entries of 4 MiB, %ld of 1 GiB\n",
         large.accesses, small.entries, large.entries);
  CHECK(small.accesses > 10 && small.accesses < MOST_ACCESSES);
  CHECK(large.accesses > 10 && large.accesses < MOST_ACCESSES);
  CHECK(small.entries > 100);             /* it counts */
  CHECK(large.entries <= 3 * (511 + 10)); /* three positions: a table of 512, found among 2^10 */
}

/* Requests meanwhile; a pause acknowledges interrupts that have not come yet. */
static void request_meanwhile(int stretch, bool eager, int after) {
  struct reader reader = begin(stretch, eager, after);
  for (int round = 0; round < 12 && failures == 0; round++) {
    CHECK_EQUAL(ioctl(reader.session, PTKIT_PAUSE), 0);
    uint64_t head = status_of(reader.session, 0).head;
    CHECK(!(status_of(reader.session, 0).flags & PTKIT_STATUS_RUNNING));
    if (round % 3 == 0) read_all(&reader);
    CHECK_EQUAL(status_of(reader.session, 0).head, head); /* it does not go on by itself */
    CHECK_EQUAL(ioctl(reader.session, PTKIT_RESUME), 0);
    if (round % 2 == 0) read_all(&reader);
  }
  CHECK(reader.read > 32768);
  end(&reader);
}

void takes_interrupts_during_requests(void) {
  for (int after = 0; after < MOST_ACCESSES && failures == 0; after++) {
    for (int kind = 0; kind < 8 && failures == 0; kind++) {
      set_parameter("model_interrupt_waits", kind & 1);
      request_meanwhile(kind & 2 ? 5000 : 9000, kind & 4, after);
      if (failures) printf("# after %d accesses, kind %d\n", after, kind);
    }
  }
  CHECK(read_number("/sys/module/ptkit/parameters/model_interrupts", "") > 1000);
  CHECK(!log_has("NMI received for unknown reason"));
}

/* Where stretches end with regions. Of a ring the position after the last byte may be its end. */
static void use_ring(void) {
  struct ptkit_config config = simple_config(0);
  uint64_t bytes = 0;
  config.mode = PTKIT_MODE_RING;
  config.buffer_bytes = 16384;
  int session = open_session(config);
  const uint8_t* data = map_buffer(session, 0, &bytes);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  for (uint64_t i = 1; i < 10; i++) {
    CHECK_EQUAL(ioctl(session, PTKIT_PAUSE), 0);
    struct ptkit_status status = status_of(session, 0);
    CHECK_EQUAL(status.error, 0);
    CHECK_EQUAL(status.position % bytes, i * 4096 % bytes);
    if (i <= 4) CHECK(is_stretch(data, i * 4096));
    CHECK_EQUAL(ioctl(session, PTKIT_RESUME), 0);
  }
  munmap((void*)data, bytes);
  close(session);
}

/* A unit may leave a region when it writes the next byte, and only then. */
void knows_where_lazy_units_are(void) {
  for (int lazy = 0; lazy < 3; lazy++) {
    set_parameter("model_lazy", lazy);
    for (int eager = 0; eager < 2; eager++) request_meanwhile(8192, eager, 0);
    set_parameter("model_bytes", 4096);
    use_ring();
    if (failures) printf("# model_lazy %d\n", lazy);
  }
  set_parameter("model_lazy", 0);
  set_parameter("model_bytes", 5000);
}
