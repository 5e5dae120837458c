// SPDX-License-Identifier: MIT
/* Branch Trace Store. Records and logs go to files, for test_windows_driver.py to compare. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "check.h"
#include "session.h"

static struct ptkit_windows_config branches_config(uint32_t mode) {
  struct ptkit_windows_config config = simple_config(0);
  config.config.output = PTKIT_OUTPUT_BTS;
  config.config.mode = mode;
  return config;
}

static void write_both(const char* name, uint32_t number, struct bytes* records, struct bytes* log) {
  write_bytes(records, name, number, "bts");
  write_bytes(log, name, number, "log");
  free_bytes(records);
  free_bytes(log);
}

/* Read in time: each branch has its record. Then nobody reads for a while: what is lost is told. */
void stores_every_branch(void) {
  struct bytes records = {0}, log = {0};
  struct ptkit_windows_config config = branches_config(PTKIT_MODE_FULL);
  config.config.buffer_bytes = 1 << 18;
  config.config.wake_up_bytes = 16384;
  void* session = open_session(config);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  for (int i = 0; i < 200; i++) {
    execute(session, 0, i % 8 == 7 ? MODEL_KERNEL_THREAD : 0, 0, 1000, &log);
    consume_all(session, 0, &records);
  }
  CHECK_EQUAL(status_of(session, 0).stops, 0);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  consume_all(session, 0, &records);
  CHECK_EQUAL(counts_of(session).dropped_bytes, 0);
  CHECK(counts_of(session).interrupts > 5);
  write_both("stores_every_branch", 0, &records, &log);

  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  execute(session, 0, 0, 0, 60000, &log);
  CHECK(status_of(session, 0).stops > 0);
  consume_all(session, 0, &records);
  execute(session, 0, 0, 0, 500, &log);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  consume_all(session, 0, &records);
  write_both("stores_every_branch", 1, &records, &log);
  device_close(session);
}

void keeps_the_newest_branches(void) {
  struct bytes records = {0}, log = {0};
  struct ptkit_windows_snapshot snapshot = {0, 0};
  static uint8_t answer[sizeof(struct ptkit_windows_newest) + 65536];
  struct ptkit_windows_newest newest;
  void* session = open_session(branches_config(PTKIT_MODE_RING));
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  execute(session, 0, 0, 0, 20000, &log);
  CHECK_EQUAL(device_request(session, PTKIT_WINDOWS_SNAPSHOT, &snapshot, sizeof(snapshot), answer,
                             sizeof(answer), NULL),
              DEVICE_SUCCESS);
  memcpy(&newest, answer, sizeof(newest));
  CHECK(newest.flags & PTKIT_STATUS_LAPPED);
  CHECK_EQUAL(newest.bytes, 65536 / 24 * 24);
  add_bytes(&records, answer + sizeof(newest), newest.bytes);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  CHECK_EQUAL(counts_of(session).interrupts, 0);
  write_both("keeps_the_newest_branches", 0, &records, &log);
  device_close(session);
}

void stores_branches_of_one_level(void) {
  for (uint32_t kernel = 0; kernel < 2; kernel++) {
    struct bytes records = {0}, log = {0};
    struct ptkit_windows_config config = branches_config(PTKIT_MODE_FULL);
    config.config.flags = PTKIT_TRACE_BRANCHES | (kernel ? PTKIT_TRACE_KERNEL : PTKIT_TRACE_USER);
    config.config.wake_up_bytes = 8192;
    void* session = open_session(config);
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
    for (uint32_t i = 0; i < 20; i++) {
      execute(session, 0, i % 2 ? MODEL_KERNEL_THREAD : 0, 0, 500, &log);
      consume_all(session, 0, &records);
    }
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
    consume_all(session, 0, &records);
    write_both("stores_branches_of_one_level", kernel, &records, &log);
    device_close(session);
  }
}

/* The newest first, from MSR_LASTBRANCH_TOS, which is 5, downwards. */
void reads_the_last_branch_stack(void) {
  struct ptkit_windows_lbr lbr = {.cpu = 1};
  void* device = device_open();
  CHECK_EQUAL(device_request(device, PTKIT_WINDOWS_LBR, &lbr, sizeof(lbr), &lbr, sizeof(lbr), NULL),
              DEVICE_SUCCESS);
  CHECK_EQUAL(lbr.count, 32);
  CHECK_EQUAL(lbr.architectural, 0);
  CHECK_EQUAL(lbr.enabled, 0);
  for (uint32_t i = 0; i < 32; i++) {
    uint32_t number = (5 + 32 - i) % 32;
    CHECK_EQUAL(lbr.branches[i].from, 1ULL << 32 | number);
    CHECK_EQUAL(lbr.branches[i].to, 2ULL << 32 | number);
    CHECK_EQUAL(lbr.branches[i].info, 3ULL << 32 | number);
  }
  lbr.cpu = MODEL_CPUS;
  CHECK_REFUSED(device, device_request(device, PTKIT_WINDOWS_LBR, &lbr, sizeof(lbr), &lbr, sizeof(lbr), NULL),
                DEVICE_INVALID_PARAMETER, PTKIT_REASON_FIELD);
  device_close(device);
}
