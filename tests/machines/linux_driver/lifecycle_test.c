// SPDX-License-Identifier: MIT
/* Sessions begin, end and leave nothing, whatever fails. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cases.h"
#include "check.h"
#include "faults.h"
#include "machine.h"

/* By CR3: the driver does not look who runs. */
static struct ptkit_config own_user_code(uint32_t cpu) {
  struct ptkit_config config = simple_config(cpu);
  config.process = getpid();
  config.flags &= ~PTKIT_TRACE_KERNEL;
  return config;
}

/*
 * Tasks are switched on a processor until it is gone, and the driver sees it as long as anybody has a
 * sideband. Nothing may begin to trace there any more.
 */
void begins_nothing_on_a_processor_that_goes(void) {
  struct ptkit_config with_sideband = simple_config(0);
  with_sideband.sideband_bytes = 65536;
  int other = open_session(with_sideband);
  int session = open_session(own_user_code(1));
  CHECK_EQUAL(ioctl(other, PTKIT_START), 0);
  for (int round = 0; round < 5; round++) {
    CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
    set_online(1, false);
    CHECK_EQUAL(status_of(session, 1).flags, PTKIT_STATUS_STARTED | PTKIT_STATUS_OFFLINE);
    CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
    CHECK_EQUAL(status_of(session, 1).flags, PTKIT_STATUS_OFFLINE);
    set_online(1, true);
    CHECK_FAILS(ioctl(session, PTKIT_STOP), EINVAL);
  }
  close(session);
  close(other);
}

static bool is_started(int session) {
  return (status_of(session, 0).flags | status_of(session, 1).flags) & PTKIT_STATUS_STARTED;
}

/* A start that fails on one processor, and then cannot be taken back on the other one. */
void stops_once_after_a_start_that_failed(void) {
  struct ptkit_config all = own_user_code(0);
  all.target = PTKIT_TARGET_ALL;
  unsigned left_started = 0;
  int failed = -1;
  for (unsigned access = 1; failed != 0; access++) {
    int session = open_session(all);
    begin_fault(ALL_ACCESSES, access);
    failed = ioctl(session, PTKIT_START);
    end_fault(ALL_ACCESSES);
    bool started = is_started(session);
    left_started += failed && started;
    if (started) {
      CHECK_FAILS(ioctl(session, PTKIT_START), EBUSY);
      CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
    }
    CHECK(!is_started(session));
    CHECK_FAILS(ioctl(session, PTKIT_STOP), EINVAL);
    CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
    CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
    close(session);
  }
  CHECK(left_started > 0);
}

/* Where a stop failed there is only the next attempt. */
void can_only_be_stopped_after_a_stop_that_failed(void) {
  struct ptkit_config all = own_user_code(0);
  all.target = PTKIT_TARGET_ALL;
  all.mode = PTKIT_MODE_RING;
  uint8_t room[64];
  struct ptkit_snapshot snapshot = {.address = (uintptr_t)room, .bytes = sizeof(room)};
  int session = open_session(all);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  begin_fault(ALL_ACCESSES, 1);
  CHECK_FAILS(ioctl(session, PTKIT_STOP), EIO);
  end_fault(ALL_ACCESSES);
  CHECK(is_started(session));
  CHECK_FAILS(ioctl(session, PTKIT_START), EBUSY);
  CHECK_FAILS(ioctl(session, PTKIT_RESUME), EINVAL);
  CHECK_FAILS(ioctl(session, PTKIT_PAUSE), EINVAL);
  CHECK_FAILS(ioctl(session, PTKIT_SNAPSHOT, &snapshot), EINVAL);
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  CHECK(!is_started(session));
  CHECK_FAILS(ioctl(session, PTKIT_STOP), EINVAL);
  close(session);
}

/* Registers that somebody else has changed lead elsewhere: they are not loaded again. */
void goes_on_in_its_own_buffer(void) {
  uint64_t bytes = 0;
  int session = open_session(simple_config(0));
  const uint8_t* data = map_buffer(session, 0, &bytes);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_EQUAL(ioctl(session, PTKIT_PAUSE), 0);
  CHECK_EQUAL(ioctl(session, PTKIT_RESUME), 0);
  set_parameter("model_registers", 0);
  CHECK_FAILS(ioctl(session, PTKIT_PAUSE), EIO);
  CHECK_EQUAL(status_of(session, 0).flags, PTKIT_STATUS_STARTED | PTKIT_STATUS_CLEARED);
  CHECK_EQUAL(status_of(session, 0).position, 5000); /* where the stop before was */
  CHECK_EQUAL(ioctl(session, PTKIT_RESUME), 0);
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  CHECK_EQUAL(status_of(session, 0).position, 10000);
  CHECK(is_stretch(data, 10000));
  munmap((void*)data, bytes);
  close(session);
}

static long interrupt_entries(void) {
  return read_number("/sys/module/ptkit/parameters/model_interrupt_entries", "");
}

/* A unit that cannot be stopped goes on after the module is unloaded, which has the interrupt's handler. */
void interrupts_no_more_without_a_session(void) {
  struct ptkit_config config = simple_config(0);
  config.wake_up_bytes = 4096;
  int session = open_session(config);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_EQUAL(interrupt_entries(), 16);
  begin_fault(ALL_ACCESSES, 1);
  close(session);
  end_fault(ALL_ACCESSES);
  CHECK(log_has("CPU 0 cannot be stopped: its buffer stays"));
  CHECK_EQUAL(read_number("/sys/module/ptkit/parameters/model_enabled", ""), 1);
  CHECK_EQUAL(interrupt_entries(), 0);
  CHECK_EQUAL(unload_module(), 0);
  CHECK_EQUAL(load_module(MODEL_MODULE), 0);
}

void stays_while_it_traces(void) {
  int session = open_session(simple_config(0));
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_EQUAL(unload_module(), EWOULDBLOCK);
  CHECK(status_of(session, 0).flags & PTKIT_STATUS_RUNNING);
  close(session);
  CHECK_EQUAL(unload_module(), 0);
  CHECK_EQUAL(load_module(MODEL_MODULE), 0);
}

static void one_life(void) {
  struct ptkit_config all = simple_config(0);
  uint64_t bytes = 0;
  all.target = PTKIT_TARGET_ALL;
  all.buffer_bytes = 2 << 20;
  CHECK_EQUAL(load_module(MODEL_MODULE), 0);
  int session = open_session(all);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  const uint8_t* data = map_buffer(session, 1, &bytes);
  CHECK_EQUAL(ioctl(session, PTKIT_PAUSE), 0);
  CHECK(is_stretch(data, 5000));
  munmap((void*)data, bytes);
  close(session);
  CHECK_EQUAL(unload_module(), 0);
}

/* Free pages on the lists of single processors (zoneinfo's pagesets); MemFree does not count them. In kB. */
static long free_on_lists(void) {
  static char text[65536];
  FILE* file = fopen("/proc/zoneinfo", "r");
  size_t size = file == NULL ? 0 : fread(text, 1, sizeof(text) - 1, file);
  long pages = 0;
  CHECK(size > 0);
  if (file != NULL) fclose(file);
  text[size] = '\0';
  for (const char* at = text; (at = strstr(at, "count:")) != NULL; at += 6) pages += strtol(at + 6, NULL, 10);
  return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* Without what the kernel caches of files. In kB. */
static long free_memory(void) {
  write_file("/proc/sys/vm/drop_caches", "3");
  usleep(200000);
  return read_number("/proc/meminfo", "MemFree:") + free_on_lists();
}

/* Where the kernel has its memory: what a failure of the next test must say. */
static void print_memory(long lost) {
  static const char* const names[] = {
      "MemFree:", "Slab:",        "SReclaimable:", "VmallocUsed:", "PageTables:",
      "Percpu:",  "KernelStack:", "AnonPages:",    "Shmem:",       "Cached:"};
  printf("memory: lost %ld kB:", lost);
  for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    printf(" %s %ld", names[i], read_number("/proc/meminfo", names[i]));
  printf(" lists: %ld\n", free_on_lists());
}

/* The first lives fill the kernel's caches. Afterwards 20 lives of 4 MiB leave nothing. */
void leaves_nothing_behind(void) {
  long lost = 1 << 20;
  CHECK_EQUAL(unload_module(), 0);
  for (int round = 0; round < 6 && lost > 1024; round++) {
    long before = free_memory();
    for (int i = 0; i < 20; i++) one_life();
    lost = before - free_memory();
    print_memory(lost);
  }
  CHECK(lost <= 1024);
  CHECK_EQUAL(load_module(MODEL_MODULE), 0);
}
