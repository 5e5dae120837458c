// SPDX-License-Identifier: MIT
/* Every request, and every reason for which one is refused. */
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "check.h"
#include "program.h"
#include "session.h"

#define FIELD(field) offsetof(struct ptkit_windows_config, field)
#define GROUPS_BYTES (PTKIT_MOST_GROUPS * sizeof(uint64_t))

static const struct known {
  uint32_t code;
  uint32_t in;
  uint32_t out;
} known[] = {
    {PTKIT_WINDOWS_QUERY, 0, sizeof(struct ptkit_windows_query)},
    {PTKIT_WINDOWS_CONFIGURE, sizeof(struct ptkit_windows_config), sizeof(struct ptkit_windows_config)},
    {PTKIT_WINDOWS_BUFFER, sizeof(struct ptkit_windows_buffer), sizeof(struct ptkit_windows_buffer)},
    {PTKIT_WINDOWS_STATUS, sizeof(struct ptkit_status), sizeof(struct ptkit_status)},
    {PTKIT_WINDOWS_SNAPSHOT, sizeof(struct ptkit_windows_snapshot), sizeof(struct ptkit_windows_newest)},
    {PTKIT_WINDOWS_CONSUME, sizeof(struct ptkit_consume), 0},
    {PTKIT_WINDOWS_READ, sizeof(struct ptkit_windows_read), 0},
    {PTKIT_WINDOWS_WAIT, 0, sizeof(struct ptkit_windows_wait)},
    {PTKIT_WINDOWS_REFUSAL, 0, sizeof(struct ptkit_windows_refusal)},
    {PTKIT_WINDOWS_LBR, sizeof(struct ptkit_windows_lbr), sizeof(struct ptkit_windows_lbr)},
};

static void* configured(void) { return open_session(simple_config(0)); }

static void* started(void) {
  void* session = configured();
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  return session;
}

/* A byte less of input or of output, and a longer input that is not zero behind what is known. */
void refuses_sizes(void) {
  static uint8_t bytes[4096];
  void* session = started();
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++) {
    const struct known* one = &known[i];
    memset(bytes, 0, sizeof(bytes));
    if (one->in != 0)
      CHECK_REFUSED(session,
                    device_request(session, one->code, bytes, one->in - 1, bytes, sizeof(bytes), NULL),
                    DEVICE_INFO_LENGTH_MISMATCH, PTKIT_REASON_SIZE);
    if (one->out != 0 && one->code != PTKIT_WINDOWS_REFUSAL)
      CHECK_REFUSED(session, device_request(session, one->code, bytes, one->in, bytes, one->out - 1, NULL),
                    DEVICE_INFO_LENGTH_MISMATCH, PTKIT_REASON_SIZE);
    if (one->in == 0) continue;
    memset(bytes, 0, sizeof(bytes));
    bytes[one->in + 9] = 1;
    CHECK_REFUSED(session,
                  device_request(session, one->code, bytes, one->in + 10, bytes, sizeof(bytes), NULL),
                  DEVICE_INFO_LENGTH_MISMATCH, PTKIT_REASON_SIZE);
  }
  device_close(session);
}

void refuses_unknown_requests(void) {
  void* session = started();
  for (uint32_t number = 14; number < 40; number++)
    CHECK_REFUSED(session, command(session, PTKIT_WINDOWS_CODE(number, METHOD_BUFFERED)),
                  DEVICE_INVALID_REQUEST, PTKIT_REASON_REQUEST);
  CHECK_REFUSED(session, command(session, PTKIT_WINDOWS_STATUS | 3), DEVICE_INVALID_REQUEST,
                PTKIT_REASON_REQUEST);
  CHECK_EQUAL(status_of(session, 0).flags & PTKIT_STATUS_RUNNING, PTKIT_STATUS_RUNNING);
  device_close(session);
}

static void check_state_refused(void* session, uint32_t code) {
  static uint8_t bytes[4096];
  memset(bytes, 0, sizeof(bytes));
  for (size_t i = 0; i < sizeof(known) / sizeof(known[0]); i++)
    if (known[i].code == code)
      CHECK_REFUSED(
          session,
          device_request(session, code, bytes, known[i].in, bytes, known[i].out ? known[i].out : 64, NULL),
          DEVICE_INVALID_STATE, PTKIT_REASON_STATE);
}

void refuses_requests_in_other_states(void) {
  static const uint32_t of_configured[] = {PTKIT_WINDOWS_BUFFER,   PTKIT_WINDOWS_STATUS,
                                           PTKIT_WINDOWS_SNAPSHOT, PTKIT_WINDOWS_CONSUME,
                                           PTKIT_WINDOWS_READ,     PTKIT_WINDOWS_WAIT};
  static const uint32_t commands[] = {PTKIT_WINDOWS_START, PTKIT_WINDOWS_STOP, PTKIT_WINDOWS_PAUSE,
                                      PTKIT_WINDOWS_RESUME};
  void* session = device_open();
  for (size_t i = 0; i < 6; i++) check_state_refused(session, of_configured[i]);
  for (size_t i = 0; i < 4; i++)
    CHECK_REFUSED(session, command(session, commands[i]), DEVICE_INVALID_STATE, PTKIT_REASON_STATE);
  device_close(session);
  session = configured();
  for (size_t i = 1; i < 4; i++)
    CHECK_REFUSED(session, command(session, commands[i]), DEVICE_INVALID_STATE, PTKIT_REASON_STATE);
  check_state_refused(session, PTKIT_WINDOWS_SNAPSHOT);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  CHECK_REFUSED(session, command(session, PTKIT_WINDOWS_START), DEVICE_INVALID_STATE, PTKIT_REASON_STATE);
  struct ptkit_windows_config config = simple_config(0);
  CHECK_REFUSED(session,
                device_request(session, PTKIT_WINDOWS_CONFIGURE, &config, sizeof(config), &config,
                               sizeof(config), NULL),
                DEVICE_INVALID_STATE, PTKIT_REASON_STATE);
  device_close(session);
}

/* A configuration that is changed so is refused for a reserved value of the field. */
#define CHECK_FIELD(field, ...)                                                          \
  do {                                                                                   \
    struct ptkit_windows_config c = simple_config(0);                                    \
    __VA_ARGS__;                                                                         \
    CHECK_CONFIG_REFUSED(c, DEVICE_INVALID_PARAMETER, PTKIT_REASON_FIELD, FIELD(field)); \
  } while (0)
#define CHECK_UNSUPPORTED(field, ...)                                                      \
  do {                                                                                     \
    struct ptkit_windows_config c = simple_config(0);                                      \
    __VA_ARGS__;                                                                           \
    CHECK_CONFIG_REFUSED(c, DEVICE_NOT_SUPPORTED, PTKIT_REASON_UNSUPPORTED, FIELD(field)); \
  } while (0)

static void refuse_targets(void) {
  CHECK_FIELD(config.target, c.config.target = 4);
  CHECK_UNSUPPORTED(config.target, c.config.target = PTKIT_TARGET_TASK);
  CHECK_FIELD(config.cpu, c.config.cpu = MODEL_CPUS);
  CHECK_FIELD(config.cpu, c.config.target = PTKIT_TARGET_ALL; c.config.cpu = 1);
  CHECK_FIELD(config.task, c.config.task = 5);
  CHECK_FIELD(config.process, c.config.process = -5);
  CHECK_UNSUPPORTED(config.flags, c.config.flags |= PTKIT_TRACE_CHILDREN);
  CHECK_FIELD(affinity, c.affinity[0] = 1);
  CHECK_FIELD(affinity, c.config.target = PTKIT_TARGET_AFFINITY);
  CHECK_FIELD(affinity, c.config.target = PTKIT_TARGET_AFFINITY; c.affinity[0] = 1ULL << MODEL_CPUS);
  CHECK_FIELD(affinity, c.config.target = PTKIT_TARGET_AFFINITY; c.affinity[0] = 1; c.affinity[31] = 1);
}

static void refuse_buffers(void) {
  CHECK_FIELD(config.output, c.config.output = 3);
  CHECK_FIELD(config.mode, c.config.mode = 2);
  CHECK_FIELD(config.mode, c.config.output = PTKIT_OUTPUT_SINGLE_RANGE);
  CHECK_FIELD(config.buffer_bytes, c.config.buffer_bytes = 0);
  CHECK_FIELD(config.buffer_bytes, c.config.buffer_bytes = 4097);
  CHECK_FIELD(config.buffer_bytes, c.config.buffer_bytes = 1ULL << 50);
  CHECK_FIELD(config.buffer_bytes, c.config.buffer_bytes = UINT64_MAX - 4095);
  CHECK_FIELD(config.buffer_bytes, c.config.output = PTKIT_OUTPUT_SINGLE_RANGE;
              c.config.mode = PTKIT_MODE_RING; c.config.buffer_bytes = 12288);
  CHECK_FIELD(config.sideband_bytes, c.config.sideband_bytes = 5000);
  CHECK_FIELD(config.sideband_bytes, c.config.sideband_bytes = 2048);
  CHECK_FIELD(config.sideband_bytes, c.config.sideband_bytes = PTKIT_MOST_SIDEBAND_BYTES * 2);
  CHECK_FIELD(config.wake_up_bytes, c.config.wake_up_bytes = 2048);
  CHECK_FIELD(config.wake_up_bytes, c.config.wake_up_bytes = 12288);
  CHECK_FIELD(config.wake_up_bytes, c.config.wake_up_bytes = 32768);
  CHECK_FIELD(config.wake_up_bytes, c.config.wake_up_bytes = 4096; c.config.mode = PTKIT_MODE_RING);
}

static void refuse_packets(void) {
  CHECK_FIELD(config.flags, c.config.flags = PTKIT_TRACE_BRANCHES);
  CHECK_FIELD(config.flags, c.config.flags |= 1ULL << 13);
  CHECK_FIELD(config.flags, c.config.flags |= PTKIT_TRACE_PTWRITE_FUP);
  CHECK_FIELD(config.mtc_freq, c.config.mtc_freq = 3);
  CHECK_FIELD(config.cyc_thresh, c.config.cyc_thresh = 1);
  CHECK_FIELD(config.range_count, c.config.range_count = 5);
  CHECK_FIELD(config.ranges, c.config.range_count = 1; c.config.ranges[0].action = PTKIT_RANGE_FILTER;
              c.config.ranges[0].zero = 1);
  CHECK_FIELD(config.ranges, c.config.range_count = 1; c.config.ranges[0].action = 3);
  CHECK_FIELD(config.ranges[1], c.config.ranges[1].first = 1);
}

static void refuse_modules(void) {
  struct ptkit_windows_config config = simple_config(0);
  memset(config.module, 'a', sizeof(config.module));
  CHECK_CONFIG_REFUSED(config, DEVICE_INVALID_PARAMETER, PTKIT_REASON_FIELD, FIELD(module));
  config = simple_config(0);
  strcpy(config.module, "no-such-driver.sys");
  CHECK_CONFIG_REFUSED(config, DEVICE_NOT_FOUND, PTKIT_REASON_NO_MODULE, FIELD(module));
}

void refuses_configurations(void) {
  refuse_targets();
  refuse_buffers();
  refuse_packets();
  refuse_modules();
  void* device = device_open();
  set_model(device, MODEL_DEAD_PROCESS, 0, 4321);
  struct ptkit_windows_config config = simple_config(0);
  config.config.process = 4321;
  CHECK_CONFIG_REFUSED(config, DEVICE_NOT_FOUND, PTKIT_REASON_NO_PROCESS, FIELD(config.process));
  /* It ends between configuration and start. */
  config.config.process = USER_PROCESS;
  void* session = open_session(config);
  set_model(device, MODEL_DEAD_PROCESS, 0, USER_PROCESS);
  CHECK_REFUSED(session, command(session, PTKIT_WINDOWS_START), DEVICE_NOT_FOUND, PTKIT_REASON_NO_PROCESS);
  device_close(session);
  device_close(device);
}

static void load_with(uint32_t parameter, uint32_t cpu, uint64_t value) {
  struct model_set set = {parameter, cpu, value};
  CHECK_EQUAL(driver_unload(), 0);
  CHECK_EQUAL(driver_load_with(&set, 1), 0);
}

/* One processor of four lacks something: no processor is asked for it. */
void refuses_what_processors_lack(void) {
  load_with(MODEL_CPUID_14_EBX, 2, 0);
  CHECK_UNSUPPORTED(config.process, c.config.process = USER_PROCESS);
  CHECK_UNSUPPORTED(config.flags, c.config.flags |= PTKIT_TRACE_MTC);
  CHECK_UNSUPPORTED(config.flags, c.config.flags |= PTKIT_TRACE_CYC);
  CHECK_UNSUPPORTED(config.flags, c.config.flags |= PTKIT_TRACE_PTWRITE);
  CHECK_UNSUPPORTED(config.flags, c.config.flags |= PTKIT_TRACE_POWER);
  CHECK_UNSUPPORTED(config.flags, c.config.flags |= PTKIT_TRACE_NO_TNT);
  CHECK_UNSUPPORTED(config.psb_freq, c.config.psb_freq = 3);
  CHECK_UNSUPPORTED(config.range_count, c.config.range_count = 1;
                    c.config.ranges[0].action = PTKIT_RANGE_FILTER; c.config.ranges[0].last = 4095);
  load_with(MODEL_CPUID_14_ECX, 1, 4);
  CHECK_UNSUPPORTED(config.output, c.config.output = PTKIT_OUTPUT_TOPA);
  load_with(MODEL_CPUID_14_ECX, 1, 3);
  CHECK_UNSUPPORTED(config.output, c.config.output = PTKIT_OUTPUT_SINGLE_RANGE;
                    c.config.mode = PTKIT_MODE_RING);
  load_with(MODEL_CPUID_1_EDX, 3, 0);
  CHECK_UNSUPPORTED(config.output, c.config.output = PTKIT_OUTPUT_BTS; c.config.mode = PTKIT_MODE_RING);
  load_with(MODEL_SYSTEM, 0, PTKIT_SYSTEM_KVA_SHADOW);
  CHECK_UNSUPPORTED(config.process, c.config.process = USER_PROCESS);
  CHECK_UNSUPPORTED(config.output, c.config.output = PTKIT_OUTPUT_BTS; c.config.mode = PTKIT_MODE_RING);
}

static void check_reason(uint32_t system, uint32_t reason) {
  struct model_set sets[] = {{MODEL_CPUID_7_EBX, 1, 0}, {MODEL_SYSTEM, 0, system}};
  struct ptkit_windows_query query = {0};
  CHECK_EQUAL(driver_unload(), 0);
  CHECK_EQUAL(driver_load_with(sets, 2), 0);
  void* device = device_open();
  CHECK_EQUAL(device_request(device, PTKIT_WINDOWS_QUERY, NULL, 0, &query, sizeof(query), NULL),
              DEVICE_SUCCESS);
  CHECK_EQUAL(query.reason, reason);
  CHECK_EQUAL(query.query.features, 0);
  CHECK_EQUAL(query.system & system, system);
  struct ptkit_windows_config config = simple_config(0);
  CHECK_REFUSED(
      device,
      device_request(device, PTKIT_WINDOWS_CONFIGURE, &config, sizeof(config), &config, sizeof(config), NULL),
      DEVICE_NOT_SUPPORTED, reason);
  device_close(device);
}

void refuses_without_trace_unit(void) {
  check_reason(0, PTKIT_REASON_NO_PT);
  check_reason(PTKIT_SYSTEM_HYPERVISOR, PTKIT_REASON_HYPERVISOR);
  check_reason(PTKIT_SYSTEM_HYPERVISOR | PTKIT_SYSTEM_VBS, PTKIT_REASON_VBS);
}

/* Asked again at the start: the handle may have been passed on. */
void refuses_without_rights(void) {
  struct ptkit_windows_lbr lbr = {0};
  struct ptkit_windows_config config = simple_config(0);
  void* session = configured();
  void* other = device_open();
  set_model(session, MODEL_UNPRIVILEGED, 0, 1);
  CHECK_REFUSED(session, command(session, PTKIT_WINDOWS_START), DEVICE_PRIVILEGE_NOT_HELD,
                PTKIT_REASON_RIGHTS);
  CHECK_REFUSED(
      other,
      device_request(other, PTKIT_WINDOWS_CONFIGURE, &config, sizeof(config), &config, sizeof(config), NULL),
      DEVICE_PRIVILEGE_NOT_HELD, PTKIT_REASON_RIGHTS);
  CHECK_REFUSED(other, device_request(other, PTKIT_WINDOWS_LBR, &lbr, sizeof(lbr), &lbr, sizeof(lbr), NULL),
                DEVICE_PRIVILEGE_NOT_HELD, PTKIT_REASON_RIGHTS);
  set_model(session, MODEL_UNPRIVILEGED, 0, 0);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  device_close(session);
  device_close(other);
}

static int32_t try_to_read(void* session, struct ptkit_windows_read read, uint32_t room) {
  static uint8_t bytes[1 << 17];
  return device_request(session, PTKIT_WINDOWS_READ, &read, sizeof(read), bytes, room, NULL);
}

void refuses_reads_outside(void) {
  static const struct ptkit_windows_read wrong[] = {
      {1, PTKIT_READ_DATA, 0, 1},     {0, 2, 0, 1},
      {0, PTKIT_READ_DATA, 65536, 1}, {0, PTKIT_READ_DATA, UINT64_MAX, 2},
      {0, PTKIT_READ_DATA, 0, 65537}, {0, PTKIT_READ_DATA, 0, UINT64_MAX},
      {0, PTKIT_READ_SIDEBAND, 0, 1}, {UINT32_MAX, PTKIT_READ_DATA, 0, 1},
  };
  void* session = started();
  for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++)
    CHECK_REFUSED(session, try_to_read(session, wrong[i], 1 << 17), DEVICE_INVALID_PARAMETER,
                  PTKIT_REASON_FIELD);
  CHECK_REFUSED(session, try_to_read(session, (struct ptkit_windows_read){0, PTKIT_READ_DATA, 0, 4096}, 4095),
                DEVICE_INVALID_PARAMETER, PTKIT_REASON_FIELD);
  CHECK_EQUAL(try_to_read(session, (struct ptkit_windows_read){0, PTKIT_READ_DATA, 65535, 65536}, 65536), 0);
  struct ptkit_consume consume = {.cpu = 0, .tail = 1};
  CHECK_REFUSED(session,
                device_request(session, PTKIT_WINDOWS_CONSUME, &consume, sizeof(consume), NULL, 0, NULL),
                DEVICE_INVALID_PARAMETER, PTKIT_REASON_FIELD);
  device_close(session);
}

/* Each allocation in turn fails; what was taken before is given back. */
void refuses_without_memory(void) {
  void* device = device_open();
  int refused = 0;
  for (int64_t left = 0; left < 64; left++) {
    struct ptkit_windows_config config = wake_up_config(0, 65536, 8192);
    config.config.target = PTKIT_TARGET_ALL;
    config.config.sideband_bytes = 4096;
    void* session = device_open();
    set_model(device, MODEL_ALLOCATIONS, 0, (uint64_t)left);
    int32_t status = device_request(session, PTKIT_WINDOWS_CONFIGURE, &config, sizeof(config), &config,
                                    sizeof(config), NULL);
    set_model(device, MODEL_ALLOCATIONS, 0, UINT64_MAX);
    if (status != DEVICE_SUCCESS) {
      refused++;
      CHECK_REFUSED(session, status, DEVICE_NO_RESOURCES, PTKIT_REASON_MEMORY);
      CHECK_EQUAL(counts_of(device).runs, 0);
      CHECK_EQUAL(counts_of(device).mappings, 0);
    }
    device_close(session);
    if (status == DEVICE_SUCCESS) break;
  }
  CHECK(refused > 8);
  device_close(device);
}
