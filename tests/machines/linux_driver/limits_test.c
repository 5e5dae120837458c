// SPDX-License-Identifier: MIT
/* Who may trace, how much memory that may take, and what all processors can do. */
#define _GNU_SOURCE
#include <linux/capability.h>
#include <pthread.h>
#include <sched.h>
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

/* Words of CPUID: 7H EBX, 14H EBX and ECX, 14H.1 EAX and EBX. */
struct words {
  uint32_t of[5];
};

#define PT (1U << 25) /* of 7H EBX */

/* Processors of one machine, and what both of them can do. */
static const struct {
  const char* what;
  struct words first;
  struct words second;
  struct words both;
} mixed[] = {
    {"all are the same",
     {{PT, 0x1bf, 0x80000007, 0x02490004, 0x003f3fff}},
     {{PT, 0x1bf, 0x80000007, 0x02490004, 0x003f3fff}},
     {{PT, 0x1bf, 0x80000007, 0x02490004, 0x003f3fff}}},
    {"no event trace, fewer ranges and periods on the second one",
     {{PT, 0x1bf, 0x80000007, 0x02490004, 0x003f3fff}},
     {{PT, 0x13f, 0x80000007, 0x00490002, 0x003f03ff}},
     {{PT, 0x13f, 0x80000007, 0x00490002, 0x003f03ff}}},
    {"the same on the first one",
     {{PT, 0x13f, 0x80000007, 0x00490002, 0x003f03ff}},
     {{PT, 0x1bf, 0x80000007, 0x02490004, 0x003f3fff}},
     {{PT, 0x13f, 0x80000007, 0x00490002, 0x003f03ff}}},
    {"each one lacks what the other one has",
     {{PT, 0x12f, 0x80000007, 0x02400003, 0x000f3fff}},
     {{PT, 0x1bd, 0x80000007, 0x00490004, 0x003f00ff}},
     {{PT, 0x12d, 0x80000007, 0x00400003, 0x000f00ff}}},
    {"one range and two: no bit is common",
     {{PT, 0x1bf, 0x80000007, 0x02490001, 0x003f3fff}},
     {{PT, 0x1bf, 0x80000007, 0x02490002, 0x003f3fff}},
     {{PT, 0x1bf, 0x80000007, 0x02490001, 0x003f3fff}}},
    {"no ranges on one",
     {{PT, 0x1bf, 0x80000007, 0x02490000, 0x003f3fff}},
     {{PT, 0x1bb, 0x80000007, 0x02490004, 0x003f3fff}},
     {{PT, 0x1bb, 0x80000007, 0x02490000, 0x003f3fff}}},
    {"tables of one entry on one",
     {{PT, 0x1bf, 0x80000005, 0x02490004, 0x003f3fff}},
     {{PT, 0x1bf, 0x80000007, 0x02490004, 0x003f3fff}},
     {{PT, 0x1bf, 0x80000005, 0x02490004, 0x003f3fff}}},
    {"a processor of the first generation, and one with all",
     {{PT, 0x001, 0x00000001, 0x00000000, 0x00000000}},
     {{PT, 0x1bf, 0x80000007, 0x02490004, 0x003f3fff}},
     {{PT, 0x001, 0x00000001, 0x00000000, 0x00000000}}},
    {"no Processor Trace on the second one",
     {{PT, 0x1bf, 0x80000007, 0x02490004, 0x003f3fff}},
     {{0, 0, 0, 0, 0}},
     {{0}}},
    {"no Processor Trace on the first one",
     {{0, 0, 0, 0, 0}},
     {{PT, 0x1bf, 0x80000007, 0x02490004, 0x003f3fff}},
     {{0}}},
};

static int load_with(const struct words* first, const struct words* second) {
  char parameters[256];
  snprintf(parameters, sizeof(parameters), "model_cpu0=%u,%u,%u,%u,%u model_cpu1=%u,%u,%u,%u,%u",
           first->of[0], first->of[1], first->of[2], first->of[3], first->of[4], second->of[0], second->of[1],
           second->of[2], second->of[3], second->of[4]);
  return load_module_with(MODEL_MODULE, parameters);
}

static void run_on(int cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int i = 0; i < 2; i++)
    if (cpu < 0 || cpu == i) CPU_SET(i, &set);
  CHECK_EQUAL(sched_setaffinity(0, sizeof(set), &set), 0);
}

static void check_common(const struct words* both) {
  struct ptkit_query query = {0};
  int session = open_device();
  CHECK_EQUAL(ioctl(session, PTKIT_QUERY, &query), 0);
  close(session);
  CHECK_EQUAL(query.cpuid_7_ebx, both->of[0]);
  CHECK_EQUAL(query.cpuid_14_0[1], both->of[1]);
  CHECK_EQUAL(query.cpuid_14_0[2], both->of[2]);
  CHECK_EQUAL(query.cpuid_14_1[0], both->of[3]);
  CHECK_EQUAL(query.cpuid_14_1[1], both->of[4]);
}

/* On all processors, with all ranges, periods and packets that were offered. */
static void use_all_processors(const struct words* both) {
  const struct ptkit_range range = {0x1000, 0x1fff, PTKIT_RANGE_FILTER, 0};
  struct ptkit_config config = simple_config(0);
  config.target = PTKIT_TARGET_ALL;
  config.mode = PTKIT_MODE_RING;
  config.range_count = both->of[3] & 7;
  for (uint32_t i = 0; i < config.range_count; i++) config.ranges[i] = range;
  if (both->of[1] & 0x80) config.flags |= PTKIT_TRACE_EVENTS;
  if (!(both->of[2] & 2)) config.buffer_bytes = 4096; /* one entry */
  int session = open_session(config);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  for (uint32_t cpu = 0; cpu < 2; cpu++) CHECK(status_of(session, cpu).flags & PTKIT_STATUS_RUNNING);
  if (config.range_count < 4)
    EXPECT_REFUSED(config, EOPNOTSUPP, range_count, c.ranges[c.range_count++] = range);
  if (!(both->of[1] & 0x80)) EXPECT_REFUSED(config, EOPNOTSUPP, flags, c.flags |= PTKIT_TRACE_EVENTS);
  set_online(1, false); /* it comes back as it was */
  set_online(1, true);
  CHECK(status_of(session, 1).flags & PTKIT_STATUS_RUNNING);
  close(session);
}

/* One that is online later, and has less, is not traced. */
static void leaves_lesser_processors_alone(void) {
  const struct words* all = &mixed[1].first;
  struct ptkit_config config = simple_config(0);
  config.target = PTKIT_TARGET_ALL;
  set_online(1, false);
  CHECK_EQUAL(load_with(all, &mixed[1].second), 0);
  check_common(all);
  set_online(1, true);
  CHECK(log_has("CPU 1 lacks what others have"));
  int session = open_session(config);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_EQUAL(status_of(session, 0).flags, PTKIT_STATUS_STARTED | PTKIT_STATUS_RUNNING);
  CHECK_EQUAL(status_of(session, 1).flags, PTKIT_STATUS_STARTED);
  close(session);
  CHECK_EQUAL(unload_module(), 0);
}

void has_what_all_processors_have(void) {
  CHECK_EQUAL(unload_module(), 0);
  for (size_t i = 0; i < sizeof(mixed) / sizeof(mixed[0]) && failures == 0; i++) {
    bool traces = mixed[i].both.of[0] != 0;
    for (int cpu = 0; cpu < 2; cpu++) { /* that loads the module */
      run_on(cpu);
      CHECK_EQUAL(load_with(&mixed[i].first, &mixed[i].second), traces ? 0 : ENODEV);
      run_on(-1);
      if (!traces) continue;
      check_common(&mixed[i].both);
      use_all_processors(&mixed[i].both);
      CHECK_EQUAL(unload_module(), 0);
    }
    if (failures) printf("# %s\n", mixed[i].what);
  }
  leaves_lesser_processors_alone();
  CHECK_EQUAL(load_module(MODEL_MODULE), 0);
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
