// SPDX-License-Identifier: MIT
#include "faults.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "machine.h"

#define DEBUGFS "/sys/kernel/debug"
#define ALL 1000000 /* more accesses than any request has */

static _Thread_local int fail_nth = -1; /* Documentation/fault-injection: /proc/thread-self/fail-nth */

static void set_option(const char* folder, const char* name, const char* value) {
  char path[128];
  snprintf(path, sizeof(path), DEBUGFS "/%s/%s", folder, name);
  write_file(path, value);
}

bool prepare_faults(void) {
  if (access("/proc/thread-self/fail-nth", W_OK) != 0) return false;
  set_option("failslab", "verbose", "0");
  set_option("failslab", "ignore-gfp-wait", "N");
  set_option("fail_page_alloc", "verbose", "0");
  set_option("fail_page_alloc", "ignore-gfp-wait", "N");
  set_option("fail_page_alloc", "ignore-gfp-highmem", "N");
  set_option("fail_page_alloc", "min-order", "0");
  set_option("fail_usercopy", "verbose", "0");
  return true;
}

static void set_steps(unsigned number) {
  char text[16];
  int size = snprintf(text, sizeof(text), "%u", number);
  if (fail_nth < 0) fail_nth = open("/proc/thread-self/fail-nth", O_RDWR | O_CLOEXEC);
  /* The write itself may be what fails. */
  while (pwrite(fail_nth, text, (size_t)size, 0) != size) CHECK_EQUAL(errno, EFAULT);
}

void begin_fault(enum fault_kind kind, unsigned number) {
  if (kind == ONE_STEP) {
    set_steps(number);
  } else if (kind != NO_FAULT) {
    set_parameter("model_faults", kind == ONE_ACCESS ? 1 : ALL);
    set_parameter("model_fault", (int)number);
  }
}

bool end_fault(enum fault_kind kind) {
  char text[16] = "";
  if (kind == NO_FAULT) return false;
  if (kind == ONE_STEP) {
    ssize_t size = pread(fail_nth, text, sizeof(text) - 1, 0);
    set_steps(0);
    return size > 0 && atoi(text) == 0;
  }
  long left = read_number("/sys/module/ptkit/parameters/model_fault", "");
  set_parameter("model_fault", 0);
  return left < (kind == ONE_ACCESS ? 1 : ALL);
}
