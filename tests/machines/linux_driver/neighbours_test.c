// SPDX-License-Identifier: MIT
/* Other users of the trace unit, as perf and KVM are: what they left in its registers stays there. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/perf_event.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "cases.h"
#include "check.h"
#include "machine.h"

#define SEED 7 /* of the values that another user left */

struct registers {
  char text[1024]; /* of all processors */
};

static struct registers registers_now(void) {
  struct registers now = {""};
  int file = open("/sys/module/ptkit/parameters/model_registers", O_RDONLY | O_CLOEXEC);
  CHECK(read(file, now.text, sizeof(now.text) - 1) > 0);
  close(file);
  return now;
}

static bool are_as_before(const struct registers* before) {
  struct registers now = registers_now();
  bool same = strcmp(now.text, before->text) == 0;
  if (!same) printf("# before: %s# now: %s", before->text, now.text);
  return same;
}

static void use_ranges(struct ptkit_config* config) {
  config->range_count = 2;
  config->ranges[0] = (struct ptkit_range){0x1000, 0x1fff, PTKIT_RANGE_FILTER, 0};
  config->ranges[1] = (struct ptkit_range){0x3000, 0x3fff, PTKIT_RANGE_STOP, 0};
}

static struct ptkit_config config_of(int kind) {
  struct ptkit_config config = simple_config(0);
  config.target = kind < 3 ? PTKIT_TARGET_ALL : PTKIT_TARGET_TASK;
  config.mode = kind == 0 ? PTKIT_MODE_FULL : PTKIT_MODE_RING;
  if (kind == 0) config.wake_up_bytes = 4096;
  if (kind == 1) config.output = PTKIT_OUTPUT_SINGLE_RANGE;
  if (kind == 2) config.process = getpid();
  if (kind == 2) config.flags &= ~PTKIT_TRACE_KERNEL;
  if (kind == 3) config.task = (pid_t)syscall(SYS_gettid);
  if (kind != 1) use_ranges(&config);
  return config;
}

static void use_unit(int session, const struct registers* before) {
  for (int round = 0; round < 3; round++) {
    CHECK_EQUAL(ioctl(session, round == 0 ? PTKIT_START : PTKIT_RESUME), 0);
    CHECK(status_of(session, 0).flags & PTKIT_STATUS_RUNNING);
    CHECK_EQUAL(ioctl(session, PTKIT_PAUSE), 0);
    CHECK(are_as_before(before));
  }
  CHECK_EQUAL(ioctl(session, PTKIT_RESUME), 0);
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  CHECK(are_as_before(before));
}

/* After a fault at each access of START, too: the next STOP or START works again. */
static void start_with_faults(int session, const struct registers* before) {
  for (int access = 1; access < 60; access++) {
    set_parameter("model_fault", access);
    int failed = ioctl(session, PTKIT_START);
    bool faulted = read_number("/sys/module/ptkit/parameters/model_fault", "") == 0;
    set_parameter("model_fault", 0);
    if (failed == 0) CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
    CHECK(are_as_before(before));
    if (!faulted) return;
  }
  CHECK(!"more accesses than expected");
}

void puts_registers_back(void) {
  for (int kind = 0; kind < 4; kind++) {
    int session = open_session(config_of(kind));
    for (int seed = SEED; seed < SEED + 2; seed++) {
      set_parameter("model_registers", seed);
      struct registers before = registers_now();
      use_unit(session, &before);
      start_with_faults(session, &before);
    }
    close(session);
    if (failures) printf("# kind %d\n", kind);
  }
  set_parameter("model_registers", 0);
}

/* A buffer that is full waits for its reader; meanwhile the unit is free. */
void puts_registers_back_while_it_waits(void) {
  struct ptkit_config config = config_of(0);
  struct registers before;
  config.target = PTKIT_TARGET_CPU;
  config.buffer_bytes = 32768;
  int session = open_session(config);
  set_parameter("model_registers", SEED);
  set_parameter("model_bytes", 9000);
  set_parameter("model_eager", 1);
  set_parameter("model_interrupt_after", 0);
  before = registers_now();
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  for (int i = 0; i < 1000 && !(status_of(session, 0).flags & PTKIT_STATUS_FULL); i++) usleep(1000);
  CHECK_EQUAL(status_of(session, 0).flags, PTKIT_STATUS_STARTED | PTKIT_STATUS_FULL);
  CHECK(are_as_before(&before));
  close(session);
  set_parameter("model_interrupt_after", -1);
  set_parameter("model_eager", 0);
  set_parameter("model_bytes", 5000);
  set_parameter("model_registers", 0);
}

/* The buffer becomes full up to the reader; the interrupt is acknowledged before the driver sees it. */
static void fill_and_read(int session, uint64_t fills) {
  struct ptkit_status status = status_of(session, 0);
  uint64_t read = status.tail;
  /* Two looks, 20 ms apart in the recorder. The first one may see that bytes have come. */
  for (int look = 0; look < 2 && !(status.flags & PTKIT_STATUS_FULL); look++) status = status_of(session, 0);
  CHECK(status.flags & PTKIT_STATUS_FULL);
  CHECK_EQUAL(status.stops, fills);
  CHECK_EQUAL(status.head, read + 32768);
  CHECK_EQUAL(status.stopped_at[0], status.head);
  CHECK_EQUAL(status.stopped_at[1], fills > 1 ? read : 0);
  struct ptkit_consume consume = {.cpu = 0, .tail = status.head};
  CHECK_EQUAL(ioctl(session, PTKIT_CONSUME, &consume), 0);
}

void goes_on_after_interrupts_that_perf_took(void) {
  for (int swallow = 1; swallow <= 2; swallow++) {
    struct ptkit_config config = config_of(0);
    config.target = PTKIT_TARGET_CPU;
    config.buffer_bytes = 32768;
    int session = open_session(config);
    set_parameter("model_bytes", 40000);
    set_parameter("model_eager", 1);
    set_parameter("model_interrupt_after", 3);
    set_parameter("model_swallow", swallow);
    CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
    for (uint64_t fills = 1; fills < 5; fills++) fill_and_read(session, fills);
    close(session);
  }
  set_parameter("model_swallow", 0);
  set_parameter("model_interrupt_after", -1);
  set_parameter("model_eager", 0);
  set_parameter("model_bytes", 5000);
}

static long unknown_interrupts(void) { return read_number("/sys/module/ptkit/parameters/model_unknown", ""); }

/* An interrupt that was acknowledged before it came is the driver's; one that comes much later is not. */
void claims_late_interrupts_for_a_while(void) {
  for (int late_us = 0; late_us < 2; late_us++) {
    struct ptkit_config config = config_of(0);
    config.target = PTKIT_TARGET_CPU;
    int session = open_session(config);
    set_parameter("model_late_us", late_us ? 10000000 : 0);
    set_parameter("model_bytes", 9000);
    set_parameter("model_interrupt_after", 1000); /* accesses: never by itself */
    set_parameter("model_interrupt_waits", 1);
    CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
    CHECK_EQUAL(ioctl(session, PTKIT_PAUSE), 0);
    long before = unknown_interrupts();
    set_parameter("model_deliver", 0);
    CHECK_EQUAL(unknown_interrupts() - before, late_us ? 0 : 1);
    close(session);
  }
  set_parameter("model_interrupt_waits", 0);
  set_parameter("model_interrupt_after", -1);
  set_parameter("model_late_us", 1000000);
  set_parameter("model_bytes", 5000);
}

/* KVM restores the registers that it saved when a guest began to run, with TraceEn. */
void stops_what_a_hypervisor_restored(void) {
  const char* enabled = "/sys/module/ptkit/parameters/model_enabled";
  int session = open_session(simple_config(0));
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  set_parameter("model_guest", 1);
  CHECK_FAILS(ioctl(session, PTKIT_PAUSE), EIO);
  set_parameter("model_guest", 0);
  CHECK_EQUAL(read_number(enabled, ""), 1);
  close(session);
  CHECK_EQUAL(read_number(enabled, ""), 0);
}

/* VMXON clears TraceEn where a processor cannot trace in VMX operation; no interrupt says so. */
void goes_on_where_it_was_cleared(void) {
  struct ptkit_config config = simple_config(0);
  config.wake_up_bytes = 4096;
  int session = open_session(config);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  status_of(session, 0);
  set_parameter("model_cleared", 0);
  struct ptkit_status status = status_of(session, 0);
  set_parameter("model_cleared", -1);
  CHECK_EQUAL(status.flags, PTKIT_STATUS_STARTED | PTKIT_STATUS_RUNNING | PTKIT_STATUS_CLEARED);
  CHECK_EQUAL(status.clears, 1);
  CHECK_EQUAL(status.cleared_at, 5000);
  CHECK_EQUAL(status.head, 5000);
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  status = status_of(session, 0);
  CHECK_EQUAL(status.clears, 1);
  CHECK_EQUAL(status.cleared_at, 5000);
  CHECK_EQUAL(status.head, 10000);
  close(session);
}

/* An event of perf's intel_pt: of a processor, or (-1) of this thread. */
static int perf_event(int cpu) {
  struct perf_event_attr attr;
  memset(&attr, 0, sizeof(attr));
  attr.size = sizeof(attr);
  attr.type = (uint32_t)read_number("/sys/bus/event_source/devices/intel_pt/type", "");
  return (int)syscall(SYS_perf_event_open, &attr, cpu < 0 ? 0 : -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static void refuses_perf(void) {
  for (int cpu = -1; cpu < 2; cpu++) CHECK_FAILS(perf_event(cpu), EBUSY);
}

static void is_free_for_perf(void) {
  for (int cpu = -1; cpu < 2; cpu++) {
    int event = perf_event(cpu);
    CHECK(event >= 0);
    close(event);
  }
}

void reserves_units_against_perf(void) {
  CHECK(!(features_with("") & PTKIT_FEATURE_RESERVES));
  CHECK(features_with("model_pmu=1") & PTKIT_FEATURE_RESERVES);
  struct ptkit_config all = simple_config(0);
  all.target = PTKIT_TARGET_ALL;
  int session = open_session(all);
  is_free_for_perf();
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  refuses_perf();
  set_online(1, false);
  set_online(1, true); /* perf has forgotten the event */
  CHECK_EQUAL(status_of(session, 1).flags, PTKIT_STATUS_STARTED | PTKIT_STATUS_RUNNING);
  refuses_perf();
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  is_free_for_perf();
  int event = perf_event(-1);
  CHECK_FAILS(ioctl(session, PTKIT_START), EBUSY);
  CHECK_EQUAL(status_of(session, 0).flags, 0);
  close(event);
  event = perf_event(1);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_EQUAL(status_of(session, 0).flags, PTKIT_STATUS_STARTED | PTKIT_STATUS_RUNNING);
  CHECK_EQUAL(status_of(session, 1).flags, PTKIT_STATUS_STARTED | PTKIT_STATUS_REFUSED);
  CHECK_EQUAL(status_of(session, 1).error, 0);
  CHECK_EQUAL(read_number("/sys/module/ptkit/parameters/model_enabled", ""), 1);
  close(session);
  close(event);
  int thread = open_session(config_of(3));
  CHECK_EQUAL(ioctl(thread, PTKIT_START), 0);
  refuses_perf();
  close(thread);
  is_free_for_perf();
  usleep(100000); /* events are freed after a grace period of RCU */
  set_parameter("model_pmu", 0);
  features_with("");
}

/* The last case: kexec may boot another kernel while a session is started. The model tells what is traced
 * then, on the console. */
void traces_until_shutdown(void) {
  struct ptkit_config all = simple_config(0);
  all.target = PTKIT_TARGET_ALL;
  unload_module();
  CHECK_EQUAL(load_module(MODEL_MODULE), 0);
  set_parameter("model_shutdown", 1);
  int session = open_session(all);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_EQUAL(read_number("/sys/module/ptkit/parameters/model_enabled", ""), 3);
  fflush(stdout);
  if (fork() != 0) return;
  for (;;) pause(); /* it has the session, too */
}
