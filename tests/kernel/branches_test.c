// SPDX-License-Identifier: MIT
/* Branch Trace Store. */
#include <poll.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cases.h"
#include "check.h"
#include "machine.h"

#define RECORD_BYTES 24

static struct ptkit_config branches_config(uint32_t mode) {
  struct ptkit_config config = simple_config(1);
  config.output = PTKIT_OUTPUT_BTS;
  config.mode = mode;
  return config;
}

static uint64_t whole_records(uint64_t bytes) { return bytes / RECORD_BYTES * RECORD_BYTES; }

/* With page-table isolation there is none. */
static bool isolated(void) { return read_number("/proc/cpuinfo", " pti ") == 0; }

void stores_no_branches_under_isolation(void) {
  struct ptkit_config config = branches_config(PTKIT_MODE_RING);
  struct ptkit_query query;
  int session = open_device();
  CHECK_EQUAL(ioctl(session, PTKIT_QUERY, &query), 0);
  CHECK_EQUAL(!!(query.features & PTKIT_FEATURE_BTS), !isolated());
  if (isolated()) {
    CHECK_FAILS(ioctl(session, PTKIT_CONFIGURE, &config), EOPNOTSUPP);
    CHECK_EQUAL(config.refused, offsetof(struct ptkit_config, output));
  } else {
    CHECK_EQUAL(ioctl(session, PTKIT_CONFIGURE, &config), 0);
  }
  close(session);
}

#define REFUSE(error, field, ...) EXPECT_REFUSED(branches_config(PTKIT_MODE_RING), error, field, __VA_ARGS__)

static bool has_branches(const char* parameters) { return features_with(parameters) & PTKIT_FEATURE_BTS; }

void stores_branches_where_it_can(void) {
  if (isolated()) return;
  REFUSE(EINVAL, flags, c.flags = PTKIT_TRACE_BRANCHES);
  REFUSE(EINVAL, flags, c.flags |= PTKIT_TRACE_TSC);
  REFUSE(EINVAL, process, c.process = 1);
  REFUSE(EINVAL, target, (c.target = PTKIT_TARGET_TASK, c.cpu = 0, c.task = 1));
  REFUSE(EINVAL, range_count, (c.range_count = 1, c.ranges[0] = (struct ptkit_range){1, 2, 1, 0}));
  REFUSE(EINVAL, ranges, c.ranges[0].last = 1);
  REFUSE(EINVAL, psb_freq, c.psb_freq = 1);
  REFUSE(EINVAL, mtc_freq, c.mtc_freq = 1);
  REFUSE(EINVAL, cyc_thresh, c.cyc_thresh = 1);
  REFUSE(EINVAL, wake_up_bytes, (c.wake_up_bytes = 4096, c.mode = PTKIT_MODE_FULL));
  REFUSE(EINVAL, mode, c.mode = 2);
  CHECK(!has_branches("model_bts=0"));
  REFUSE(EOPNOTSUPP, output, (void)0);
  CHECK(!has_branches("model_bts=-1"));
  CHECK(has_branches("model_bts=1"));
  REFUSE(EOPNOTSUPP, flags, c.flags &= ~PTKIT_TRACE_USER);
  close(open_session(branches_config(PTKIT_MODE_RING)));
  CHECK(has_branches(""));
  struct ptkit_config user = branches_config(PTKIT_MODE_RING);
  user.flags = PTKIT_TRACE_USER;
  close(open_session(user));
}

void keeps_the_newest_branches(void) {
  static uint8_t newest[65536];
  if (isolated()) return;
  struct ptkit_config config = branches_config(PTKIT_MODE_RING);
  config.buffer_bytes = 8192;
  uint64_t used = whole_records(config.buffer_bytes);
  int session = open_session(config);
  set_parameter("model_bytes", 3000);
  for (int round = 0; round < 2; round++) {
    CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
    for (uint64_t i = 1; i <= 9; i++) {
      struct ptkit_snapshot snapshot = {.cpu = 1, .address = (uintptr_t)newest, .bytes = sizeof(newest)};
      CHECK_EQUAL(ioctl(session, PTKIT_SNAPSHOT, &snapshot), 0);
      CHECK_EQUAL(snapshot.position, i * 3000 % used);
      CHECK_EQUAL(snapshot.bytes, i * 3000 < used ? i * 3000 : used);
      CHECK_EQUAL(!!(snapshot.flags & PTKIT_STATUS_LAPPED), i * 3000 > used);
      CHECK(is_stretch(newest, snapshot.bytes));
      CHECK_EQUAL(status_of(session, 1).flags & PTKIT_STATUS_RUNNING, PTKIT_STATUS_RUNNING);
    }
    CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  }
  set_parameter("model_bytes", 5000);
  close(session);
}

/* No interrupt comes: the end is seen at the next pause. */
void stores_branches_until_it_is_full(void) {
  if (isolated()) return;
  struct ptkit_config config = branches_config(PTKIT_MODE_FULL);
  uint64_t bytes = 0;
  uint64_t used = whole_records(4096 * 7);
  config.buffer_bytes = 4096 * 7;
  int session = open_session(config);
  const uint8_t* data = map_buffer(session, 1, &bytes);
  CHECK_EQUAL(bytes, 4096 * 7);
  set_parameter("model_bytes", 6000);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  for (uint64_t i = 1; i <= 6; i++) {
    uint64_t written = i * 6000 < used ? i * 6000 : used;
    CHECK_EQUAL(ioctl(session, PTKIT_PAUSE), 0);
    CHECK_EQUAL(status_of(session, 1).position, written);
    CHECK_EQUAL(status_of(session, 1).flags,
                PTKIT_STATUS_STARTED | (written == used ? PTKIT_STATUS_FULL : 0));
    CHECK(is_stretch(data, written));
    CHECK(written == used || data[written] == 0);
    CHECK_EQUAL(ioctl(session, PTKIT_RESUME), 0);
  }
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  set_parameter("model_bytes", 5000);
  munmap((void*)data, bytes);
  close(session);
}

void ends_branches_by_an_interrupt(void) {
  if (isolated()) return;
  int session = open_session(branches_config(PTKIT_MODE_FULL));
  struct pollfd poll_it = {.fd = session, .events = POLLIN};
  set_parameter("model_bytes", 10000);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_EQUAL(poll(&poll_it, 1, 0), 0);
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  set_parameter("model_bytes", 62000); /* behind the threshold, not at the end */
  set_parameter("model_eager", 1);
  for (int after = 0; after < 8; after++) {
    long before = read_number("/sys/module/ptkit/parameters/model_interrupts", "");
    set_parameter("model_interrupt_after", after);
    CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
    CHECK_EQUAL(poll(&poll_it, 1, 5000), 1);
    CHECK_EQUAL(poll_it.revents, POLLIN);
    CHECK_EQUAL(status_of(session, 1).flags, PTKIT_STATUS_STARTED | PTKIT_STATUS_FULL);
    CHECK_EQUAL(status_of(session, 1).position, whole_records(62000));
    CHECK_EQUAL(read_number("/sys/module/ptkit/parameters/model_interrupts", ""), before + 1);
    CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  }
  set_parameter("model_interrupt_after", -1);
  set_parameter("model_eager", 0);
  set_parameter("model_bytes", 5000);
  close(session);
}

void shares_no_branches(void) {
  if (isolated()) return;
  int session = open_session(branches_config(PTKIT_MODE_RING));
  int packets = open_session(simple_config(1));
  set_parameter("model_precise", 1);
  CHECK_FAILS(ioctl(session, PTKIT_START), EBUSY);
  set_parameter("model_precise", -1);
  CHECK_EQUAL(ioctl(packets, PTKIT_START), 0);
  CHECK_FAILS(ioctl(session, PTKIT_START), EBUSY);
  CHECK_EQUAL(ioctl(packets, PTKIT_STOP), 0);
  set_parameter("model_faulty", 1);
  CHECK_FAILS(ioctl(session, PTKIT_START), EIO);
  set_parameter("model_faulty", -1);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_FAILS(ioctl(packets, PTKIT_START), EBUSY);
  set_parameter("model_faulty", 1);
  CHECK_FAILS(ioctl(session, PTKIT_STOP), EIO);
  set_parameter("model_faulty", -1);
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  close(session);
  close(packets);
}
