// SPDX-License-Identifier: MIT
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "check.h"
#include "host.h"
#include "program.h"
#include "session.h"

#define WAIT_MS 5000

static bool is_traced(void* device, uint32_t cpu) { return registers_of(device, cpu).ctl & 1; }

static void check_nothing_is_taken(void* device) {
  struct model_counts counts = counts_of(device);
  CHECK_EQUAL(counts.runs, 0);
  CHECK_EQUAL(counts.mappings, 0);
  CHECK_EQUAL(counts.timers, 0);
  for (uint32_t cpu = 0; cpu < MODEL_CPUS; cpu++) CHECK(!is_traced(device, cpu));
}

void begins_and_ends_again_and_again(void) {
  void* session = open_session(wake_up_config(0, 65536, 8192));
  for (int i = 0; i < 200; i++) {
    struct bytes log = {0};
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
    CHECK(is_traced(session, 0));
    execute(session, 0, 0, 0, 10, &log);
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
    CHECK(!is_traced(session, 0));
    CHECK(status_of(session, 0).head > 0);
    free_bytes(&log);
  }
  device_close(session);
  void* device = device_open();
  check_nothing_is_taken(device);
  device_close(device);
}

static int32_t finish_wait(void* request, uint32_t* events) {
  int32_t status = DEVICE_PENDING;
  for (int i = 0; i < WAIT_MS / 10 && status == DEVICE_PENDING; i++)
    status = device_finish(request, 10, events);
  return status;
}

/* A wait that pends: what happened before is told first. */
static void* begin_wait(void* session, struct ptkit_windows_wait* wait) {
  for (int i = 0; i < 20; i++) {
    void* request = device_begin(session, PTKIT_WINDOWS_WAIT, NULL, 0, wait, sizeof(*wait));
    if (device_finish(request, 50, NULL) == DEVICE_PENDING) return request;
  }
  CHECK(!"a wait pends");
  return NULL;
}

void ends_a_wait_by_stop_cancel_and_close(void) {
  struct ptkit_windows_wait wait = {0};
  struct ptkit_windows_wait second = {0};
  void* session = open_session(wake_up_config(0, 65536, 8192));
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_PAUSE), DEVICE_SUCCESS);

  void* request = begin_wait(session, &wait);
  CHECK_REFUSED(session, device_request(session, PTKIT_WINDOWS_WAIT, NULL, 0, &second, sizeof(second), NULL),
                DEVICE_BUSY, PTKIT_REASON_WAITS);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  if (request != NULL) CHECK_EQUAL(finish_wait(request, NULL), DEVICE_SUCCESS);
  CHECK(wait.events != 0);

  request = begin_wait(session, &wait);
  if (request != NULL) {
    device_cancel(request);
    CHECK_EQUAL(finish_wait(request, NULL), DEVICE_CANCELLED);
  }
  request = begin_wait(session, &wait);
  device_close(session);
  if (request != NULL) CHECK_EQUAL(finish_wait(request, NULL), DEVICE_CANCELLED);
}

void ends_when_the_handle_is_closed(void) {
  void* device = device_open();
  struct model_registers before = registers_of(device, 1);
  for (int i = 0; i < 20; i++) {
    void* session = open_session(wake_up_config(1, 65536, 8192));
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
    execute(session, 1, 0, 0, 500, NULL);
    CHECK(is_traced(device, 1));
    device_close(session);
    CHECK(!is_traced(device, 1));
  }
  struct model_registers after = registers_of(device, 1);
  CHECK_EQUAL(memcmp(&before, &after, sizeof(after)), 0);
  check_nothing_is_taken(device);
  device_close(device);
}

/* The client that is killed. */
int trace_until_killed(void) {
  struct ptkit_windows_wait wait = {0};
  void* session = open_session(wake_up_config(2, 65536, 8192));
  command(session, PTKIT_WINDOWS_START);
  device_finish(device_begin(session, PTKIT_WINDOWS_WAIT, NULL, 0, &wait, sizeof(wait)), UINT32_MAX, NULL);
  return 1;
}

static bool becomes(void* device, uint32_t cpu, bool traced) {
  for (int i = 0; i < WAIT_MS / 10; i++) {
    if (is_traced(device, cpu) == traced) return true;
    sleep_ms(10);
  }
  return false;
}

#ifdef _WIN32
void ends_when_the_client_is_killed(void) {
  char line[MAX_PATH + 32];
  void* device = device_open();
  for (int i = 0; i < 3; i++) {
    STARTUPINFOA startup = {.cb = sizeof(startup)};
    PROCESS_INFORMATION client;
    GetModuleFileNameA(NULL, line + 1, MAX_PATH);
    line[0] = '"';
    strcat(line, "\" trace-until-killed");
    CHECK(CreateProcessA(NULL, line, NULL, NULL, FALSE, 0, NULL, NULL, &startup, &client));
    CHECK(becomes(device, 2, true));
    execute(device, 2, 0, 0, 500, NULL);
    TerminateProcess(client.hProcess, 9);
    CHECK(becomes(device, 2, false));
    CloseHandle(client.hProcess);
    CloseHandle(client.hThread);
  }
  sleep_ms(200);
  check_nothing_is_taken(device);
  device_close(device);
}
#else
/* There is one process: its handle is closed while a request pends, as Windows does it. */
void ends_when_the_client_is_killed(void) {
  struct ptkit_windows_wait wait = {0};
  void* device = device_open();
  void* session = open_session(wake_up_config(2, 65536, 8192));
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  void* request = device_begin(session, PTKIT_WINDOWS_WAIT, NULL, 0, &wait, sizeof(wait));
  CHECK(becomes(device, 2, true));
  device_cancel(request);
  CHECK_EQUAL(finish_wait(request, NULL), DEVICE_CANCELLED);
  device_close(session);
  check_nothing_is_taken(device);
  device_close(device);
}
#endif

/* All outputs, with buffers of many sizes. */
void gives_all_back(void) {
  void* device = device_open();
  for (uint64_t bytes = 4096; bytes <= 4 << 20; bytes *= 4) {
    for (uint32_t output = 0; output <= PTKIT_OUTPUT_BTS; output++) {
      struct ptkit_windows_config config = simple_config(0);
      config.config.target = PTKIT_TARGET_ALL;
      config.config.buffer_bytes = bytes;
      config.config.output = output;
      config.config.mode = PTKIT_MODE_RING;
      config.config.sideband_bytes = 65536;
      void* session = open_session(config);
      CHECK(counts_of(device).runs > 0);
      CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
      execute(session, 3, 0, 0, 2000, NULL);
      device_close(session);
      check_nothing_is_taken(device);
    }
  }
  device_close(device);
}

/* driver_test.c reports what the driver has not given back. */
void unloads_and_loads_again(void) {
  for (int i = 0; i < 3; i++) {
    void* session = open_session(wake_up_config(0, 65536, 8192));
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
    execute(session, 0, 0, 0, 1000, NULL);
    device_close(session);
    CHECK_EQUAL(driver_unload(), 0);
    CHECK(device_open() == NULL);
    CHECK_EQUAL(driver_load(), 0);
  }
}
