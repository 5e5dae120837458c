// SPDX-License-Identifier: MIT
/* Branch Trace Store. */
#define _GNU_SOURCE
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
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

enum side { ANY_SIDE, INSIDE, OUTSIDE };

/*
 * Stored branches, without the marks. Marks are in the order of time, and branches are between a
 * mark that begins and one that ends. Returns the bytes in `out`; `seen` is called for each mark.
 */
static uint64_t without_marks(const uint8_t* data, uint64_t bytes, uint8_t* out,
                              void (*seen)(const struct ptkit_branch_mark* mark)) {
  enum side side = ANY_SIDE;
  uint64_t kept = 0;
  uint64_t last = 0;
  CHECK_EQUAL(bytes % RECORD_BYTES, 0);
  for (uint64_t at = 0; at < bytes; at += RECORD_BYTES) {
    struct ptkit_branch_mark mark;
    memcpy(&mark, data + at, sizeof(mark));
    if (mark.from != 0) {
      CHECK(side != OUTSIDE);
      memcpy(out + kept, data + at, RECORD_BYTES);
      kept += RECORD_BYTES;
      continue;
    }
    CHECK(mark.tsc > last);
    CHECK_EQUAL(mark.pid < 0, mark.tid < 0);
    CHECK(side == ANY_SIDE || (side == INSIDE) == (mark.pid < 0));
    side = mark.pid < 0 ? OUTSIDE : INSIDE;
    last = mark.tsc;
    if (seen != NULL) seen(&mark);
  }
  return kept;
}

static bool are_stretches(const uint8_t* data, uint64_t bytes) {
  static uint8_t branches[1 << 20];
  return is_stretch(branches, without_marks(data, bytes, branches, NULL));
}

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
  REFUSE(EINVAL, flags, c.flags |= PTKIT_TRACE_CHILDREN);
  REFUSE(EINVAL, target, (c.target = PTKIT_TARGET_TASK, c.cpu = 0, c.task = 1));
  REFUSE(EINVAL, range_count, (c.range_count = 1, c.ranges[0] = (struct ptkit_range){1, 2, 1, 0}));
  REFUSE(EINVAL, ranges, c.ranges[0].last = 1);
  REFUSE(EINVAL, psb_freq, c.psb_freq = 1);
  REFUSE(EINVAL, mtc_freq, c.mtc_freq = 1);
  REFUSE(EINVAL, cyc_thresh, c.cyc_thresh = 1);
  REFUSE(EINVAL, wake_up_bytes, c.wake_up_bytes = 4096);
  REFUSE(EINVAL, wake_up_bytes, (c.wake_up_bytes = 32768, c.mode = PTKIT_MODE_FULL));
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
    for (int i = 1; i <= 9; i++) {
      struct ptkit_snapshot snapshot = {.cpu = 1, .address = (uintptr_t)newest, .bytes = sizeof(newest)};
      CHECK_EQUAL(ioctl(session, PTKIT_SNAPSHOT, &snapshot), 0);
      bool lapped = snapshot.flags & PTKIT_STATUS_LAPPED;
      CHECK(lapped || i < 3);
      CHECK_EQUAL(snapshot.bytes, lapped ? used : snapshot.position);
      CHECK(snapshot.bytes >= 3000 && snapshot.position < used);
      CHECK(are_stretches(newest, snapshot.bytes));
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
  for (int i = 1; i <= 6; i++) {
    CHECK_EQUAL(ioctl(session, PTKIT_PAUSE), 0);
    struct ptkit_status status = status_of(session, 1);
    bool full = used - status.position < (used / RECORD_BYTES / 16 + 3) * RECORD_BYTES;
    CHECK(full || i < 6);
    CHECK_EQUAL(status.flags, PTKIT_STATUS_STARTED | (full ? PTKIT_STATUS_FULL : 0));
    CHECK(are_stretches(data, status.position));
    CHECK(status.position == used || data[status.position] == 0);
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
    CHECK_EQUAL(status_of(session, 1).position, whole_records(62000) + 2 * RECORD_BYTES);
    CHECK_EQUAL(read_number("/sys/module/ptkit/parameters/model_interrupts", ""), before + 1);
    CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  }
  set_parameter("model_interrupt_after", -1);
  set_parameter("model_eager", 0);
  set_parameter("model_bytes", 5000);
  close(session);
}

static uint8_t stored[4 << 20];

/* Reads what was stored since the last time; returns how many bytes are in `stored`. */
static uint64_t read_branches(int session, const uint8_t* data, uint64_t room, uint64_t before) {
  struct ptkit_status status = status_of(session, 1);
  struct ptkit_consume consume = {.cpu = 1, .tail = status.head};
  CHECK(status.head - status.tail <= room);
  CHECK_EQUAL(status.tail, before);
  for (uint64_t at = before; at < status.head && at < sizeof(stored); at++) stored[at] = data[at % room];
  if (status.head != 0) CHECK_EQUAL(ioctl(session, PTKIT_CONSUME, &consume), 0);
  return status.head;
}

static struct ptkit_config streaming_config(void) {
  struct ptkit_config config = branches_config(PTKIT_MODE_FULL);
  config.wake_up_bytes = 4096;
  return config;
}

static void wait_until_full(int session) {
  for (int i = 0; i < 5000 && !(status_of(session, 1).flags & PTKIT_STATUS_FULL); i++) usleep(1000);
}

/*
 * Each interrupt is served at the threshold, and brings the next one until the buffer is full. The reader
 * is on another processor: if it does not wait, it may make room before.
 */
void hands_branches_over(void) {
  static uint8_t branches[sizeof(stored)];
  if (isolated()) return;
  int session = open_session(streaming_config());
  uint64_t room = 0;
  const uint8_t* data = map_buffer(session, 1, &room);
  struct pollfd poll_it = {.fd = session, .events = POLLIN};
  set_parameter("model_eager", 1); /* 5000 bytes at once: more than up to the threshold */
  for (int after = 0; after < 8; after++) {
    uint64_t bytes = 0;
    bool waits = after % 2 == 0;
    set_parameter("model_interrupt_after", after);
    CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
    for (int i = 0; i < 100 && bytes < 5 * room; i++) {
      CHECK_EQUAL(poll(&poll_it, 1, 5000), 1);
      CHECK_EQUAL(poll_it.revents, POLLIN);
      if (waits) wait_until_full(session);
      bytes = read_branches(session, data, room, bytes);
    }
    CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
    struct ptkit_status status = status_of(session, 1);
    CHECK(status.head >= 5 * room);
    CHECK(!waits || status.stops >= 5);
    CHECK(status.stops < 2 || status.stopped_at[1] < status.stopped_at[0]);
    CHECK(status.stops == 0 || status.stopped_at[0] <= status.head);
    CHECK(status.stops == 0 || status.stopped_at[0] % RECORD_BYTES == 0);
    CHECK(is_stretch(branches, without_marks(stored, bytes, branches, NULL)));
  }
  set_parameter("model_interrupt_after", -1);
  set_parameter("model_eager", 0);
  munmap((void*)data, room);
  close(session);
}

static pid_t followed;
static int32_t running; /* the PID of the last mark that begins */
static unsigned marks_of_it;
static unsigned marks_of_others;

static void count_mark(const struct ptkit_branch_mark* mark) {
  if (mark->pid < 0) CHECK_EQUAL(~mark->pid, running);
  running = mark->pid;
  if (mark->pid == followed) {
    CHECK_EQUAL(mark->tid, followed);
    marks_of_it++;
  } else if (mark->pid >= 0) {
    marks_of_others++;
  }
}

/* A process that sleeps again and again on the second processor, and executes itself anew. */
static pid_t begin_sleeper(void) {
  pid_t child = fork();
  cpu_set_t cpus;
  if (child != 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  CPU_ZERO(&cpus);
  CPU_SET(1, &cpus);
  if (sched_setaffinity(0, sizeof(cpus), &cpus) != 0) _exit(1);
  for (int i = 0; i < 200; i++) usleep(1000);
  execl("/bin/busybox", "busybox", "sleep", "1000", NULL);
  _exit(1);
}

/* Each context switch brings a mark; 10 branches are stored before the next one. */
static void names_threads(bool all) {
  static uint8_t branches[sizeof(stored)];
  uint64_t room = 0;
  uint64_t bytes = 0;
  followed = begin_sleeper();
  marks_of_it = marks_of_others = 0;
  struct ptkit_config config = streaming_config();
  if (!all) config.process = followed;
  int session = open_session(config);
  const uint8_t* data = map_buffer(session, 1, &room);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  for (int i = 0; i < 50; i++) {
    usleep(10000);
    bytes = read_branches(session, data, room, bytes);
  }
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  bytes = read_branches(session, data, room, bytes);
  CHECK_EQUAL(status_of(session, 1).stops, 0);
  uint64_t kept = without_marks(stored, bytes, branches, count_mark);
  CHECK(is_stretch(branches, kept));
  CHECK_EQUAL(kept, (marks_of_it + marks_of_others) * 10 * RECORD_BYTES);
  CHECK(marks_of_it > 100);
  CHECK(all ? marks_of_others > 100 : marks_of_others == 0);
  kill(followed, SIGKILL);
  CHECK_EQUAL(waitpid(followed, NULL, 0), followed);
  munmap((void*)data, room);
  close(session);
}

void names_threads_of_branches(void) {
  if (isolated()) return;
  set_parameter("model_bytes", 10 * RECORD_BYTES);
  names_threads(true);
  names_threads(false);
  set_parameter("model_bytes", 5000);
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
