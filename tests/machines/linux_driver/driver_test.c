// SPDX-License-Identifier: MIT
/* Runs in the emulated machine, as root. One line a case: "ok NAME" or "not ok NAME". */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/capability.h>
#include <poll.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "check.h"
#include "following.h"
#include "machine.h"

int failures;

static void refuses_without_processor_trace(void) {
  CHECK_EQUAL(load_module(REAL_MODULE), ENODEV);
  CHECK(log_has("no Intel Processor Trace: CPUID 7H EBX is 0x"));
  CHECK(access(PTKIT_DEVICE, F_OK) != 0);
}

/* The result of a child's open(), as a user with at most one capability. */
static int open_as_user(int capability) {
  pid_t child = fork();
  if (child == 0) {
    become_user(capability);
    _exit(open_device() >= 0 ? 0 : errno);
  }
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

static void opens_for_those_who_may_trace(void) {
  struct stat node;
  CHECK_EQUAL(stat(PTKIT_DEVICE, &node), 0);
  CHECK_EQUAL(node.st_mode & 0777, 0600);
  CHECK_EQUAL(open_as_user(CAP_PERFMON), EACCES);
  CHECK_EQUAL(chmod(PTKIT_DEVICE, 0666), 0); /* as a rule of udev may do */
  CHECK_EQUAL(open_as_user(-1), EPERM);
  CHECK_EQUAL(open_as_user(CAP_SYS_PTRACE), EPERM);
  CHECK_EQUAL(open_as_user(CAP_PERFMON), 0);
  CHECK_EQUAL(open_as_user(CAP_SYS_ADMIN), 0);
}

static void says_what_it_can(void) {
  struct ptkit_query query;
  int session = open_device();
  CHECK_EQUAL(ioctl(session, PTKIT_QUERY, &query), 0);
  CHECK_EQUAL(query.abi, PTKIT_ABI);
  CHECK(query.features & PTKIT_FEATURE_TOPA);
  CHECK(query.features & PTKIT_FEATURE_SINGLE_RANGE);
  CHECK(query.features & PTKIT_FEATURE_PROCESS_BOTH);
  CHECK(query.features & PTKIT_FEATURE_TASK);
  CHECK(query.features & PTKIT_FEATURE_CHILDREN);
  CHECK(query.features & PTKIT_FEATURE_SIDEBAND);
  CHECK_EQUAL(query.cpuid_7_ebx, 1U << 25);
  CHECK_EQUAL(query.cpuid_14_1[0] & 7, 4);
  CHECK_EQUAL(query.nominal_ratio, 21);
  CHECK(query.cpus >= 2 && query.physical_bits >= 36);
  close(session);
}

/* Programs of another version have shorter or longer structures. */
static void takes_structures_of_other_sizes(void) {
  struct {
    struct ptkit_config config;
    uint64_t newer;
  } longer = {simple_config(0), 1};
  unsigned command = _IOWR(PTKIT_IOCTL_TYPE, 1, longer);
  uint32_t shorter[2] = {0, 0xaaaa};
  int session = open_device();
  CHECK_FAILS(ioctl(session, command, &longer), E2BIG);
  longer.newer = 0;
  CHECK_EQUAL(ioctl(session, command, &longer), 0);
  CHECK_EQUAL(ioctl(session, _IOR(PTKIT_IOCTL_TYPE, 0, uint32_t), shorter), 0);
  CHECK_EQUAL(shorter[0], PTKIT_ABI);
  CHECK_EQUAL(shorter[1], 0xaaaa);
  CHECK_FAILS(ioctl(session, _IO(PTKIT_IOCTL_TYPE, 99), 0), ENOTTY);
  CHECK_FAILS(ioctl(session, _IO(0x12, 3), 0), ENOTTY);
  close(session);
}

#define REFUSE(error, field, ...) EXPECT_REFUSED(simple_config(0), error, field, __VA_ARGS__)

static void refuses_what_it_cannot_do(void) {
  REFUSE(EINVAL, target, c.target = 3);
  REFUSE(EINVAL, cpu, c.cpu = 1000000);
  REFUSE(EINVAL, cpu, (c.target = PTKIT_TARGET_ALL, c.cpu = 1));
  REFUSE(EINVAL, task, c.task = 1);
  REFUSE(EINVAL, task, c.target = PTKIT_TARGET_TASK);
  REFUSE(EINVAL, task, (c.target = PTKIT_TARGET_TASK, c.task = -1));
  REFUSE(EINVAL, process, c.process = -1);
  REFUSE(EINVAL, process, (c.target = PTKIT_TARGET_TASK, c.task = 1, c.process = 1));
  REFUSE(EINVAL, flags, c.flags |= PTKIT_TRACE_CHILDREN);
  REFUSE(EINVAL, output, c.output = 3);
  REFUSE(EINVAL, mode, c.output = PTKIT_OUTPUT_SINGLE_RANGE);
  REFUSE(EINVAL, mode, c.mode = 2);
  REFUSE(EINVAL, buffer_bytes, c.buffer_bytes = 0);
  REFUSE(EINVAL, buffer_bytes, c.buffer_bytes = 4097);
  REFUSE(EINVAL, buffer_bytes, c.buffer_bytes = 1ULL << 62);
  REFUSE(EINVAL, sideband_bytes, c.sideband_bytes = 2048);
  REFUSE(EINVAL, sideband_bytes, c.sideband_bytes = 12288);
  REFUSE(EINVAL, sideband_bytes, c.sideband_bytes = 2 * PTKIT_MOST_SIDEBAND_BYTES);
  REFUSE(EINVAL, wake_up_bytes, c.wake_up_bytes = 12288);
  REFUSE(EINVAL, wake_up_bytes, c.wake_up_bytes = 32768);
  REFUSE(EINVAL, wake_up_bytes, (c.wake_up_bytes = 4096, c.mode = PTKIT_MODE_RING));
  REFUSE(EINVAL, flags, c.flags = PTKIT_TRACE_BRANCHES);
  REFUSE(EINVAL, flags, c.flags |= 1ULL << 63);
  REFUSE(EINVAL, flags, c.flags |= PTKIT_TRACE_PTWRITE_FUP);
  REFUSE(EINVAL, mtc_freq, c.mtc_freq = 3);
  REFUSE(EOPNOTSUPP, cyc_thresh, (c.flags |= PTKIT_TRACE_CYC, c.cyc_thresh = 15));
  REFUSE(EOPNOTSUPP, mtc_freq, (c.flags |= PTKIT_TRACE_MTC, c.mtc_freq = 1));
  REFUSE(EINVAL, cyc_thresh, c.cyc_thresh = 1);
  REFUSE(EINVAL, cyc_thresh, (c.flags |= PTKIT_TRACE_CYC, c.cyc_thresh = 16));
  REFUSE(EOPNOTSUPP, psb_freq, c.psb_freq = 15);
  REFUSE(EINVAL, range_count, c.range_count = 5);
  REFUSE(EINVAL, ranges, c.range_count = 1);
  REFUSE(EINVAL, ranges, c.ranges[0].first = 1);
  REFUSE(EINVAL, ranges[1], (c.range_count = 2, c.ranges[0].action = 1, c.ranges[1].action = 3));
  REFUSE(EINVAL, ranges, (c.range_count = 1, c.ranges[0] = (struct ptkit_range){2, 1, 1, 0}));
  REFUSE(EINVAL, ranges, (c.range_count = 1, c.ranges[0] = (struct ptkit_range){0, 1ULL << 60, 1, 0}));
}

static void needs_to_be_configured(void) {
  struct ptkit_status status = {0};
  int session = open_device();
  CHECK_FAILS(ioctl(session, PTKIT_START), EINVAL);
  CHECK_FAILS(ioctl(session, PTKIT_STOP), EINVAL);
  CHECK_FAILS(ioctl(session, PTKIT_STATUS, &status), EINVAL);
  CHECK(mmap(NULL, 4096, PROT_READ, MAP_SHARED, session, 0) == MAP_FAILED);
  struct ptkit_config config = simple_config(0);
  CHECK_EQUAL(ioctl(session, PTKIT_CONFIGURE, &config), 0);
  CHECK_FAILS(ioctl(session, PTKIT_CONFIGURE, &config), EBUSY);
  CHECK_FAILS(ioctl(session, PTKIT_STOP), EINVAL);
  CHECK_FAILS(ioctl(session, PTKIT_PAUSE), EINVAL);
  CHECK_FAILS(ioctl(session, PTKIT_RESUME), EINVAL);
  status.cpu = 1;
  CHECK_FAILS(ioctl(session, PTKIT_STATUS, &status), EINVAL);
  close(session);
}

static void fills_a_buffer_and_stops(void) {
  struct ptkit_config config = simple_config(1);
  uint64_t bytes = 0;
  config.buffer_bytes = 4096 * 7;
  int session = open_session(config);
  const uint8_t* data = map_buffer(session, 1, &bytes);
  CHECK_EQUAL(bytes, 4096 * 7);
  set_parameter("model_bytes", 5000);
  for (int round = 0; round < 2; round++) {
    CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
    CHECK_EQUAL(status_of(session, 1).flags, PTKIT_STATUS_STARTED | PTKIT_STATUS_RUNNING);
    for (uint64_t i = 1; i <= 7; i++) {
      uint64_t written = i * 5000 < bytes ? i * 5000 : bytes;
      CHECK_EQUAL(ioctl(session, PTKIT_PAUSE), 0);
      struct ptkit_status status = status_of(session, 1);
      CHECK_EQUAL(status.position, written);
      CHECK_EQUAL(status.flags, PTKIT_STATUS_STARTED | (written == bytes ? PTKIT_STATUS_FULL : 0));
      CHECK(is_stretch(data, written));
      CHECK(written == bytes || data[written] == 0);
      CHECK_EQUAL(ioctl(session, PTKIT_RESUME), 0);
    }
    CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
    CHECK_EQUAL(status_of(session, 1).flags, PTKIT_STATUS_FULL);
  }
  munmap((void*)data, bytes);
  close(session);
}

static void check_ring(struct ptkit_config config) {
  static uint8_t newest[65536];
  uint64_t bytes = 0;
  config.mode = PTKIT_MODE_RING;
  config.buffer_bytes = 16384;
  int session = open_session(config);
  const uint8_t* data = map_buffer(session, config.cpu, &bytes);
  set_parameter("model_bytes", 3000);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  for (uint64_t i = 1; i <= 12; i++) {
    struct ptkit_snapshot snapshot = {
        .cpu = config.cpu, .address = (uintptr_t)newest, .bytes = sizeof(newest)};
    CHECK_EQUAL(ioctl(session, PTKIT_SNAPSHOT, &snapshot), 0);
    CHECK_EQUAL(snapshot.position, i * 3000 % bytes);
    CHECK_EQUAL(snapshot.bytes, i * 3000 < bytes ? i * 3000 : bytes);
    CHECK_EQUAL(!!(snapshot.flags & PTKIT_STATUS_LAPPED), i * 3000 > bytes);
    CHECK(is_stretch(newest, snapshot.bytes));
    CHECK_EQUAL(newest[snapshot.bytes - 1], data[snapshot.position - 1]);
    CHECK(status_of(session, config.cpu).flags & PTKIT_STATUS_RUNNING);
  }
  struct ptkit_snapshot less = {.cpu = config.cpu, .address = (uintptr_t)newest, .bytes = 100};
  CHECK_EQUAL(ioctl(session, PTKIT_SNAPSHOT, &less), 0);
  CHECK_EQUAL(less.bytes, 100);
  CHECK_EQUAL(newest[99], data[less.position - 1]);
  less.address = 1;
  CHECK_FAILS(ioctl(session, PTKIT_SNAPSHOT, &less), EFAULT);
  CHECK(status_of(session, config.cpu).flags & PTKIT_STATUS_RUNNING);
  munmap((void*)data, bytes);
  close(session);
}

static void keeps_the_newest_of_a_ring(void) {
  struct ptkit_config config = simple_config(0);
  check_ring(config);
  config.output = PTKIT_OUTPUT_SINGLE_RANGE;
  check_ring(config);
}

static int consume(int session, uint64_t tail) {
  struct ptkit_consume request = {.cpu = 0, .tail = tail};
  return ioctl(session, PTKIT_CONSUME, &request);
}

/* The model makes no interrupts: what is written is seen at a pause, and how far it can go. */
static void writes_where_it_was_read(void) {
  struct ptkit_config config = simple_config(0);
  uint64_t bytes = 0;
  uint64_t head = 0;
  uint64_t stops = 0;
  const uint64_t region = 4096;
  config.wake_up_bytes = 2 * region;
  int session = open_session(config);
  struct pollfd poll_it = {.fd = session, .events = POLLIN};
  const uint8_t* data = map_buffer(session, 0, &bytes);
  static uint8_t all[1 << 20];
  uint64_t read = 0;
  set_parameter("model_bytes", 30000);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_FAILS(consume(session, 1), EINVAL);
  for (uint64_t round = 0; round < 40; round++) {
    CHECK_EQUAL(ioctl(session, PTKIT_PAUSE), 0);
    struct ptkit_status status = status_of(session, 0);
    uint64_t limit = read / region * region + bytes;
    CHECK_EQUAL(status.head, head + 30000 < limit ? head + 30000 : limit);
    CHECK_EQUAL(status.position, status.head % bytes);
    if (status.head != head && status.head == limit) stops++;
    CHECK_EQUAL(status.stops, stops);
    head = status.head;
    if (head == limit) CHECK_EQUAL(status.stopped_at[0], head);
    CHECK_EQUAL(poll(&poll_it, 1, 0), 1);
    /* The reader is late: the writer has to wait. */
    if (round % 4 == 3) {
      for (; read < head - 100; read++) all[read] = data[read % bytes];
      CHECK_EQUAL(consume(session, read), 0);
      CHECK_FAILS(consume(session, read - 1), EINVAL);
      CHECK_FAILS(consume(session, head + 1), EINVAL);
    }
    CHECK_EQUAL(ioctl(session, PTKIT_RESUME), 0);
    CHECK_EQUAL(!!(status_of(session, 0).flags & PTKIT_STATUS_FULL), head == read / region * region + bytes);
  }
  CHECK(stops > 0 && head > 4 * bytes);
  CHECK(is_stretch(all, read));
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  set_parameter("model_bytes", 5000);
  munmap((void*)data, bytes);
  close(session);
}

/* More than one table has room for, in pieces as memory has them. */
static void fills_large_buffers(void) {
  struct ptkit_config config = simple_config(0);
  uint64_t bytes = 0;
  config.target = PTKIT_TARGET_ALL;
  config.buffer_bytes = 24 << 20;
  int session = open_session(config);
  set_parameter("model_bytes", 25 << 20);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  for (uint32_t cpu = 0; cpu < 2; cpu++) {
    const uint8_t* data = map_buffer(session, cpu, &bytes);
    CHECK_EQUAL(status_of(session, cpu).position, bytes);
    CHECK(is_stretch(data, bytes));
    munmap((void*)data, bytes);
  }
  close(session);
  config.buffer_bytes = 4ULL << 30;
  session = open_device();
  CHECK_FAILS(ioctl(session, PTKIT_CONFIGURE, &config), ENOMEM);
  close(session);
  set_parameter("model_bytes", 5000);
}

static void shares_no_processor(void) {
  struct ptkit_config all = simple_config(0);
  all.target = PTKIT_TARGET_ALL;
  int first = open_session(simple_config(1));
  int second = open_session(all);
  CHECK_EQUAL(ioctl(first, PTKIT_START), 0);
  CHECK_FAILS(ioctl(first, PTKIT_START), EBUSY);
  CHECK_FAILS(ioctl(second, PTKIT_START), EBUSY);
  CHECK_EQUAL(status_of(second, 0).flags, 0);
  CHECK_EQUAL(ioctl(first, PTKIT_STOP), 0);
  CHECK_EQUAL(ioctl(second, PTKIT_START), 0);
  CHECK_FAILS(ioctl(first, PTKIT_START), EBUSY);
  close(second); /* stops */
  set_parameter("model_taken", 1);
  CHECK_FAILS(ioctl(first, PTKIT_START), EBUSY);
  set_parameter("model_taken", -1);
  CHECK_EQUAL(ioctl(first, PTKIT_START), 0);
  close(first);
}

static void reports_faults(void) {
  struct ptkit_config all = simple_config(0);
  all.target = PTKIT_TARGET_ALL;
  int session = open_session(all);
  struct pollfd poll_it = {.fd = session, .events = POLLIN};
  set_parameter("model_faulty", 1);
  CHECK_FAILS(ioctl(session, PTKIT_START), EIO);
  CHECK_EQUAL(status_of(session, 0).flags, 0);
  CHECK_EQUAL(status_of(session, 1).error, -EIO);
  set_parameter("model_faulty", -1);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_EQUAL(status_of(session, 1).error, 0);
  set_parameter("model_faulty", 1);
  CHECK_FAILS(ioctl(session, PTKIT_PAUSE), EIO);
  CHECK_EQUAL(poll(&poll_it, 1, 0), 1);
  CHECK(poll_it.revents & POLLERR);
  CHECK_FAILS(ioctl(session, PTKIT_STOP), EIO);
  CHECK(status_of(session, 1).flags & PTKIT_STATUS_RUNNING);
  set_parameter("model_faulty", -1);
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  close(session);
}

/* As VMXON does where the processor cannot trace then. */
static void sees_that_somebody_stopped_it(void) {
  struct ptkit_config all = simple_config(0);
  all.target = PTKIT_TARGET_ALL;
  int session = open_session(all);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_EQUAL(ioctl(session, PTKIT_PAUSE), 0);
  CHECK_EQUAL(status_of(session, 1).flags, PTKIT_STATUS_STARTED);
  CHECK_EQUAL(ioctl(session, PTKIT_RESUME), 0);
  set_parameter("model_cleared", 1);
  CHECK_EQUAL(ioctl(session, PTKIT_PAUSE), 0);
  CHECK_EQUAL(status_of(session, 0).flags, PTKIT_STATUS_STARTED);
  CHECK_EQUAL(status_of(session, 1).flags, PTKIT_STATUS_STARTED | PTKIT_STATUS_CLEARED);
  CHECK_EQUAL(status_of(session, 1).position, 10000); /* what it wrote until then is there */
  set_parameter("model_cleared", -1);
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  CHECK_EQUAL(status_of(session, 1).flags, PTKIT_STATUS_CLEARED);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  CHECK_EQUAL(status_of(session, 1).flags, 0);
  close(session);
}

static void knows_whether_it_goes_on_under_hypervisors(void) {
  CHECK(!(features_with("model_vmx=0") & PTKIT_FEATURE_VMX));
  CHECK(features_with("") & PTKIT_FEATURE_VMX);
}

static void maps_for_reading_only(void) {
  int session = open_session(simple_config(0));
  off_t elsewhere = (off_t)1 << 40;
  void* data = mmap(NULL, 65536, PROT_READ, MAP_SHARED, session, 0);
  CHECK(data != MAP_FAILED);
  CHECK_FAILS(mprotect(data, 65536, PROT_READ | PROT_WRITE), EACCES);
  CHECK_FAILS((long)mmap(NULL, 65536, PROT_READ | PROT_WRITE, MAP_SHARED, session, 0), EPERM);
  CHECK_FAILS((long)mmap(NULL, 65536, PROT_READ, MAP_PRIVATE, session, 0), EINVAL);
  CHECK_FAILS((long)mmap(NULL, 65536 + 4096, PROT_READ, MAP_SHARED, session, 0), EINVAL);
  CHECK_FAILS((long)mmap(NULL, 4096, PROT_READ, MAP_SHARED, session, 4096), EINVAL);
  CHECK_FAILS((long)mmap(NULL, 4096, PROT_READ, MAP_SHARED, session, elsewhere), EINVAL);
  CHECK_FAILS((long)mremap(data, 65536, 131072, MREMAP_MAYMOVE), EFAULT);
  set_parameter("model_bytes", 5000);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  close(session); /* the mapping keeps the session */
  CHECK_EQUAL(unload_module(), EWOULDBLOCK);
  CHECK(is_stretch(data, 5000));
  munmap(data, 65536);
}

static void* pause_soon(void* session) {
  usleep(100000);
  ioctl(*(int*)session, PTKIT_PAUSE);
  return NULL;
}

static void wakes_up_who_waits(void) {
  int session = open_device();
  struct pollfd poll_it = {.fd = session, .events = POLLIN};
  pthread_t thread;
  CHECK_EQUAL(poll(&poll_it, 1, 0), 1);
  CHECK_EQUAL(poll_it.revents, POLLERR);
  struct ptkit_config config = simple_config(0);
  CHECK_EQUAL(ioctl(session, PTKIT_CONFIGURE, &config), 0);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_EQUAL(poll(&poll_it, 1, 0), 0);
  pthread_create(&thread, NULL, pause_soon, &session);
  CHECK_EQUAL(poll(&poll_it, 1, 5000), 1);
  CHECK_EQUAL(poll_it.revents, POLLIN);
  pthread_join(thread, NULL);
  close(session);
}

/* "fuzz_seconds=NUMBER" among the kernel's parameters: so long. */
static void survives_nonsense(void) {
  const char* seconds = getenv("fuzz_seconds");
  CHECK(fuzz_driver(seconds ? (unsigned)atoi(seconds) : 10) > 100);
  CHECK_EQUAL(unload_module(), 0); /* nothing holds it: all sessions and mappings are gone */
}

static const struct {
  const char* name;
  void (*run)(void);
} cases[] = {
#define CASE(name) \
  { #name, name }
    CASE(refuses_without_processor_trace),
    {"loads", NULL},
    CASE(opens_for_those_who_may_trace),
    CASE(says_what_it_can),
    CASE(takes_structures_of_other_sizes),
    CASE(refuses_what_it_cannot_do),
    CASE(asks_for_rights_again),
    CASE(charges_locked_memory),
    CASE(clears_buffers_while_others_go_on),
    CASE(has_what_all_processors_have),
    CASE(knows_errata_of_single_ranges),
    CASE(wakes_up_only_where_interrupts_are_seen),
    CASE(switches_with_address_masking),
    CASE(needs_to_be_configured),
    CASE(fills_a_buffer_and_stops),
    CASE(keeps_the_newest_of_a_ring),
    CASE(writes_where_it_was_read),
    CASE(goes_on_by_interrupts_alone),
    CASE(takes_interrupts_during_requests),
    CASE(does_bounded_work_in_interrupts),
    CASE(knows_where_lazy_units_are),
    CASE(fills_large_buffers),
    CASE(shares_no_processor),
    CASE(reports_faults),
    CASE(sees_that_somebody_stopped_it),
    CASE(knows_whether_it_goes_on_under_hypervisors),
    CASE(maps_for_reading_only),
    CASE(wakes_up_who_waits),
    CASE(goes_on_when_a_processor_comes_back),
    CASE(goes_on_after_suspend),
    CASE(goes_on_after_sleep_without_registers),
    CASE(traces_one_process),
    CASE(traces_a_process_where_it_runs),
    CASE(traces_one_of_its_threads),
    CASE(traces_a_thread_with_slow_registers),
    CASE(traces_itself),
    CASE(renews_page_tables_after_exec),
    CASE(traces_children),
    CASE(forgets_children),
    CASE(knows_processes_by_more_than_numbers),
    CASE(comes_to_a_processor_that_is_taken),
    CASE(keeps_errors_of_switches),
    CASE(goes_on_elsewhere_when_a_processor_goes),
    CASE(ends_while_it_is_traced),
    CASE(stores_no_branches_under_isolation),
    CASE(stores_branches_where_it_can),
    CASE(keeps_the_newest_branches),
    CASE(stores_branches_until_it_is_full),
    CASE(ends_branches_by_an_interrupt),
    CASE(hands_branches_over),
    CASE(names_threads_of_branches),
    CASE(shares_no_branches),
    CASE(tells_what_threads_do),
    CASE(tells_of_one_process),
    CASE(tells_of_one_thread),
    CASE(tells_of_threads_that_a_thread_begins),
    CASE(tells_of_children),
    CASE(numbers_threads_as_the_opener_does),
    CASE(tells_of_modules),
    CASE(counts_lost_records),
    CASE(wakes_up_at_a_quarter),
    CASE(maps_rings_for_reading_only),
    CASE(puts_registers_back),
    CASE(puts_registers_back_while_it_waits),
    CASE(goes_on_after_interrupts_that_perf_took),
    CASE(claims_late_interrupts_for_a_while),
    CASE(stops_what_a_hypervisor_restored),
    CASE(goes_on_where_it_was_cleared),
    CASE(reserves_units_against_perf),
    CASE(goes_on_beside_neighbours),
    CASE(shares_a_processor_by_switches),
    CASE(begins_nothing_on_a_processor_that_goes),
    CASE(stops_once_after_a_start_that_failed),
    CASE(can_only_be_stopped_after_a_stop_that_failed),
    CASE(goes_on_in_its_own_buffer),
    CASE(interrupts_no_more_without_a_session),
    {"walks_all_sequences_of_requests", walks_all_sequences_of_requests},
    CASE(stays_while_it_traces),
    CASE(leaves_nothing_behind),
    CASE(survives_nonsense),
    CASE(traces_until_shutdown),
};

/* All of them without arguments but the walk, which takes minutes. */
static bool is_wanted(const char* name, int count, char** names) {
  for (int i = 1; i < count; i++)
    if (strcmp(names[i], name) == 0) return true;
  if (count < 2) return strcmp(name, "walks_all_sequences_of_requests") != 0;
  return strcmp(name, "loads") == 0;
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IOLBF, 0);
  for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
    if (!is_wanted(cases[i].name, argc, argv)) continue;
    failures = 0;
    if (cases[i].run == NULL)
      CHECK_EQUAL(load_module(MODEL_MODULE), 0);
    else
      cases[i].run();
    printf("%sok %s\n", failures == 0 ? "" : "not ", cases[i].name);
  }
  /* Only "out of tree" and "not signed", not "warned" or "died". */
  CHECK_EQUAL(read_number("/proc/sys/kernel/tainted", "") & ~(4096 | 8192), 0);
  printf("%sok kernel_has_no_complaint\n", failures == 0 ? "" : "not ");
  printf("done\n");
  return 0;
}
