// SPDX-License-Identifier: MIT
/* Processors that go offline and come back, and a machine that sleeps. */
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cases.h"
#include "check.h"
#include "machine.h"

void goes_on_when_a_processor_comes_back(void) {
  struct ptkit_config all = simple_config(0);
  uint64_t bytes = 0;
  all.target = PTKIT_TARGET_ALL;
  int session = open_session(all);
  const uint8_t* data = map_buffer(session, 1, &bytes);
  set_parameter("model_bytes", 5000);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  set_online(1, false);
  struct ptkit_status status = status_of(session, 1);
  CHECK_EQUAL(status.flags, PTKIT_STATUS_STARTED | PTKIT_STATUS_OFFLINE);
  CHECK_EQUAL(status.position, 5000);
  set_online(1, true);
  CHECK_EQUAL(status_of(session, 1).flags, PTKIT_STATUS_STARTED | PTKIT_STATUS_RUNNING);
  CHECK_EQUAL(ioctl(session, PTKIT_PAUSE), 0);
  CHECK_EQUAL(status_of(session, 1).position, 10000);
  set_online(1, false);
  CHECK_EQUAL(ioctl(session, PTKIT_RESUME), 0); /* of a processor that is away: later */
  CHECK_EQUAL(ioctl(session, PTKIT_PAUSE), 0);
  CHECK_EQUAL(ioctl(session, PTKIT_RESUME), 0);
  set_online(1, true);
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  CHECK_EQUAL(status_of(session, 1).position, 15000);
  CHECK_EQUAL(status_of(session, 0).position, 15000);
  CHECK(is_stretch(data, 15000));
  munmap((void*)data, bytes);
  close(session);
}

/* As far as the kernel's own test of suspend goes: everything but the sleep itself. */
static void suspend(void) {
  write_file("/sys/module/suspend/parameters/pm_test_delay", "1");
  write_file("/sys/power/pm_test", "core");
  write_file("/sys/power/state", "mem");
  write_file("/sys/power/pm_test", "none");
}

/* A processor loses its registers in sleep. What is put back at the end is what it had afterwards. */
void goes_on_after_sleep_without_registers(void) {
  const char* registers = "/sys/module/ptkit/parameters/model_registers";
  struct ptkit_config config = simple_config(0);
  char text[64] = "";
  uint64_t bytes = 0;
  features_with("model_sleep=1");
  set_parameter("model_registers", 7);
  config.wake_up_bytes = 4096;
  int session = open_session(config);
  const uint8_t* data = map_buffer(session, 0, &bytes);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  suspend();
  CHECK_EQUAL(status_of(session, 0).flags, PTKIT_STATUS_STARTED | PTKIT_STATUS_RUNNING);
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  struct ptkit_status status = status_of(session, 0);
  CHECK_EQUAL(status.head, 10000);
  CHECK_EQUAL(status.clears, 0);
  CHECK(is_stretch(data, 10000));
  FILE* file = fopen(registers, "r");
  CHECK(file != NULL && fgets(text, sizeof(text), file) != NULL);
  CHECK(strncmp(text, "0 0 0 0 0 0", 11) == 0);
  if (file != NULL) fclose(file);
  munmap((void*)data, bytes);
  close(session);
  set_parameter("model_sleep", 0);
  features_with("");
}

void goes_on_after_suspend(void) {
  struct ptkit_config all = simple_config(0);
  all.target = PTKIT_TARGET_ALL;
  int session = open_session(all);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  suspend();
  for (uint32_t cpu = 0; cpu < 2; cpu++) {
    CHECK_EQUAL(status_of(session, cpu).flags, PTKIT_STATUS_STARTED | PTKIT_STATUS_RUNNING);
    CHECK_EQUAL(status_of(session, cpu).position, 5000); /* at the stop before */
  }
  CHECK_EQUAL(ioctl(session, PTKIT_PAUSE), 0);
  suspend();
  for (uint32_t cpu = 0; cpu < 2; cpu++) {
    uint64_t bytes = 0;
    const uint8_t* data = map_buffer(session, cpu, &bytes);
    CHECK_EQUAL(status_of(session, cpu).flags, PTKIT_STATUS_STARTED);
    CHECK_EQUAL(status_of(session, cpu).position, 10000);
    CHECK(is_stretch(data, 10000));
    munmap((void*)data, bytes);
  }
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  close(session);
}
