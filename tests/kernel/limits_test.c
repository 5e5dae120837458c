// SPDX-License-Identifier: MIT
/* Who may trace, how much memory that may take, and what all processors can do. */
#define _GNU_SOURCE
#include <linux/capability.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cases.h"
#include "check.h"
#include "machine.h"

static int exit_code(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

/* A child inherits the open file, and has given its rights up. */
static int request_as_user(int session, unsigned long request, void* argument) {
  pid_t child = fork();
  if (child == 0) {
    become_user(-1);
    _exit(ioctl(session, request, argument) == 0 ? 0 : errno);
  }
  return exit_code(child);
}

void asks_for_rights_again(void) {
  struct ptkit_config config = simple_config(0);
  int session = open_device();
  CHECK_EQUAL(request_as_user(session, PTKIT_CONFIGURE, &config), EPERM);
  CHECK_EQUAL(ioctl(session, PTKIT_CONFIGURE, &config), 0);
  CHECK_EQUAL(request_as_user(session, PTKIT_START, NULL), EPERM);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_EQUAL(request_as_user(session, PTKIT_STOP, NULL), 0);
  close(session);
}

static long locked_kib(void) { return read_number("/proc/self/status", "VmLck:"); }

/* CONFIGURE as a user who may lock 64 KiB. */
static int configure_with_limit(uint64_t bytes, int capability) {
  pid_t child = fork();
  if (child == 0) {
    struct rlimit limit = {65536, 65536};
    struct ptkit_config config = simple_config(0);
    int session = open_device();
    config.buffer_bytes = bytes;
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0) _exit(255);
    if (capability >= 0) become_user(capability);
    _exit(ioctl(session, PTKIT_CONFIGURE, &config) == 0 ? 0 : errno);
  }
  return exit_code(child);
}

void charges_locked_memory(void) {
  struct ptkit_config all = simple_config(0);
  long before = locked_kib();
  all.target = PTKIT_TARGET_ALL;
  all.buffer_bytes = 1 << 20;
  all.sideband_bytes = 1 << 16;
  int session = open_session(all);
  CHECK_EQUAL(locked_kib(), before + 2 * (1024 + 64));
  int order[2];
  CHECK_EQUAL(pipe(order), 0);
  pid_t child = fork();
  if (child == 0) { /* it has the session until it is told to end */
    char byte;
    close(order[1]);
    _exit(locked_kib() != 0 || read(order[0], &byte, 1) != 0);
  }
  close(session);
  CHECK_EQUAL(locked_kib(), before + 2 * (1024 + 64));
  close(order[0]);
  close(order[1]);
  CHECK_EQUAL(exit_code(child), 0);
  CHECK_EQUAL(locked_kib(), before);
  CHECK_EQUAL(configure_with_limit(65536, CAP_PERFMON), 0);
  CHECK_EQUAL(configure_with_limit(131072, CAP_PERFMON), ENOMEM);
  CHECK_EQUAL(configure_with_limit(131072, -1), 0); /* root has CAP_IPC_LOCK */
}

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

static int asked; /* another session */
static volatile bool asks;
static double longest; /* answer */

static void* ask(void* unused) {
  (void)unused;
  while (asks) {
    double before = now();
    status_of(asked, 0);
    double took = now() - before;
    if (took > longest) longest = took;
  }
  return NULL;
}

/* START of a large session takes as long as its buffers are cleared. */
void clears_buffers_while_others_go_on(void) {
  struct ptkit_config large = simple_config(1);
  pthread_t thread;
  large.buffer_bytes = 256 << 20;
  int session = open_session(large);
  asked = open_session(simple_config(0));
  for (int round = 0; round < 2; round++) {
    asks = true;
    longest = 0;
    CHECK_EQUAL(pthread_create(&thread, NULL, ask, NULL), 0);
    double before = now();
    CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
    double took = now() - before;
    asks = false;
    pthread_join(thread, NULL);
    CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
    if (round == 0) continue; /* new pages are clear */
    CHECK(longest < took / 2);
    if (failures) printf("# START took %f s, the longest answer %f s\n", took, longest);
  }
  close(session);
  close(asked);
}

void has_what_all_processors_have(void) {
  struct ptkit_query query = query_with("model_hybrid=1");
  CHECK_EQUAL(query.cpuid_14_0[1], 0x13f);
  CHECK_EQUAL(query.cpuid_14_1[0], 0x00490002);
  CHECK_EQUAL(query.cpuid_14_1[1], 0x003f03ff);
  EXPECT_REFUSED(simple_config(0), EOPNOTSUPP, flags, c.flags |= PTKIT_TRACE_EVENTS);
  struct ptkit_config config = simple_config(1);
  int session = open_session(config);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  set_online(1, false); /* it comes back as it was */
  set_online(1, true);
  CHECK(status_of(session, 1).flags & PTKIT_STATUS_RUNNING);
  close(session);
  query_with("");
}

/* A guest with Processor Trace and without counters. */
void wakes_up_only_where_interrupts_are_seen(void) {
  CHECK(!(features_with("model_no_counters=1") & PTKIT_FEATURE_WAKE_UP));
  EXPECT_REFUSED(simple_config(0), EOPNOTSUPP, wake_up_bytes, c.wake_up_bytes = 4096);
  CHECK(features_with("") & PTKIT_FEATURE_WAKE_UP);
}

/* TGL052, ADL037, RPL017. */
void knows_errata_of_single_ranges(void) {
  static const struct {
    unsigned signature;
    bool large;
  } processors[] = {
      {0x306d4, true},  {0x406f1, true},   {0x506e3, true},  {0x50654, true},  {0x906ea, true},
      {0x706e5, true},  {0x606a6, true},   {0x506c9, true},  {0x806c1, false}, {0x806d1, false},
      {0x906a4, false}, {0x90672, false},  {0xb0671, false}, {0xb06a2, false}, {0x806f8, false},
      {0xa06a4, false}, {0x600f12, false},
  };
  char parameters[64];
  for (size_t i = 0; i < sizeof(processors) / sizeof(processors[0]); i++) {
    snprintf(parameters, sizeof(parameters), "model_signature=%u", processors[i].signature);
    struct ptkit_query query = query_with(parameters);
    CHECK_EQUAL(query.most_single_bytes, processors[i].large ? query.most_bytes : 4096);
    if (failures) printf("# %x\n", processors[i].signature);
  }
  query_with("model_signature=0x906a4");
  struct ptkit_config config = simple_config(0);
  config.output = PTKIT_OUTPUT_SINGLE_RANGE;
  config.mode = PTKIT_MODE_RING;
  EXPECT_REFUSED(config, EOPNOTSUPP, buffer_bytes, c.buffer_bytes = 8192);
  config.buffer_bytes = 4096;
  close(open_session(config));
  query_with("model_signature=0x906a4 large_single_range=1");
  config.buffer_bytes = 8192;
  close(open_session(config));
  query_with("");
}

/* CR3 of a process may have bits then that CR3_MATCH lacks: context switches say whether it runs. */
void switches_with_address_masking(void) {
  pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  for (int masks = 1; masks >= 0; masks--) {
    features_with(masks ? "model_lam=1" : "");
    struct ptkit_config config = simple_config(0);
    config.process = child;
    config.flags &= ~PTKIT_TRACE_KERNEL;
    int session = open_session(config);
    CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
    CHECK_EQUAL(status_of(session, 0).flags,
                masks ? PTKIT_STATUS_STARTED : PTKIT_STATUS_STARTED | PTKIT_STATUS_RUNNING);
    close(session);
  }
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
}
