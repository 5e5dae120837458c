// SPDX-License-Identifier: MIT
#include "session.h"

#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "host.h"
#include "program.h"

#define MOST_BLOCKS 4096

struct ptkit_windows_config simple_config(uint32_t cpu) {
  struct ptkit_windows_config config;
  memset(&config, 0, sizeof(config));
  config.config.target = PTKIT_TARGET_CPU;
  config.config.cpu = cpu;
  config.config.buffer_bytes = 65536;
  config.config.flags = PTKIT_TRACE_USER | PTKIT_TRACE_KERNEL | PTKIT_TRACE_BRANCHES;
  return config;
}

struct ptkit_windows_config wake_up_config(uint32_t cpu, uint64_t buffer_bytes, uint64_t wake_up_bytes) {
  struct ptkit_windows_config config = simple_config(cpu);
  config.config.buffer_bytes = buffer_bytes;
  config.config.wake_up_bytes = wake_up_bytes;
  return config;
}

void* open_session(struct ptkit_windows_config config) {
  void* session = device_open();
  CHECK(session != NULL);
  if (session == NULL) return NULL;
  int32_t status = device_request(session, PTKIT_WINDOWS_CONFIGURE, &config, sizeof(config), &config,
                                  sizeof(config), NULL);
  CHECK_EQUAL(status, DEVICE_SUCCESS);
  if (status != DEVICE_SUCCESS) {
    struct ptkit_windows_refusal refusal = refusal_of(session);
    printf("# reason %u field %u cpu %u\n", refusal.reason, refusal.field, refusal.cpu);
  }
  return session;
}

int32_t command(void* session, uint32_t code) {
  return device_request(session, code, NULL, 0, NULL, 0, NULL);
}

struct ptkit_status status_of(void* session, uint32_t cpu) {
  struct ptkit_status status;
  memset(&status, 0, sizeof(status));
  status.cpu = cpu;
  CHECK_EQUAL(
      device_request(session, PTKIT_WINDOWS_STATUS, &status, sizeof(status), &status, sizeof(status), NULL),
      DEVICE_SUCCESS);
  return status;
}

struct ptkit_windows_refusal refusal_of(void* session) {
  struct ptkit_windows_refusal refusal;
  memset(&refusal, 0, sizeof(refusal));
  CHECK_EQUAL(device_request(session, PTKIT_WINDOWS_REFUSAL, NULL, 0, &refusal, sizeof(refusal), NULL),
              DEVICE_SUCCESS);
  return refusal;
}

void check_refused(void* session, int32_t is, int32_t status, uint32_t reason, const char* file, int line) {
  struct ptkit_windows_refusal refusal = refusal_of(session);
  if (is == status && refusal.reason == reason) return;
  if (failures++ < MOST_PRINTED)
    printf("# %s:%d: status %x, reason %u (field %u), not %x, %u\n", file, line, (unsigned)is, refusal.reason,
           refusal.field, (unsigned)status, reason);
}

void check_config_refused(struct ptkit_windows_config config, int32_t status, uint32_t reason, size_t field,
                          const char* file, int line) {
  void* session = device_open();
  int32_t is = device_request(session, PTKIT_WINDOWS_CONFIGURE, &config, sizeof(config), &config,
                              sizeof(config), NULL);
  check_refused(session, is, status, reason, file, line);
  if (refusal_of(session).field != field) {
    if (failures++ < MOST_PRINTED)
      printf("# %s:%d: field %u, not %u\n", file, line, refusal_of(session).field, (unsigned)field);
  }
  device_close(session);
}

void add_bytes(struct bytes* bytes, const void* more, size_t count) {
  if (count == 0) return;
  bytes->all = realloc(bytes->all, bytes->count + count);
  memcpy(bytes->all + bytes->count, more, count);
  bytes->count += count;
}

void write_bytes(const struct bytes* bytes, const char* name, uint32_t cpu, const char* kind) {
  char path[128];
  snprintf(path, sizeof(path), "%s.%u.%s", name, cpu, kind);
  FILE* file = fopen(path, "wb");
  CHECK(file != NULL);
  if (file == NULL) return;
  CHECK_EQUAL(fwrite(bytes->all, 1, bytes->count, file), bytes->count);
  fclose(file);
}

void free_bytes(struct bytes* bytes) {
  free(bytes->all);
  *bytes = (struct bytes){NULL, 0};
}

void write_program(void* device, uint32_t number) {
  static uint8_t answer[sizeof(struct model_program) + PROGRAM_BYTES];
  struct bytes program = {0};
  CHECK_EQUAL(device_request(device, MODEL_PROGRAM, &number, sizeof(number), answer, sizeof(answer), NULL),
              DEVICE_SUCCESS);
  add_bytes(&program, answer, sizeof(answer));
  write_bytes(&program, "program", number, "code");
  free_bytes(&program);
}

void read_buffer(void* session, uint32_t cpu, uint32_t what, uint64_t offset, uint64_t count,
                 struct bytes* out) {
  struct ptkit_windows_read read = {cpu, what, offset, count};
  uint32_t got = 0;
  if (count == 0) return;
  uint8_t* room = malloc(count);
  CHECK_EQUAL(device_request(session, PTKIT_WINDOWS_READ, &read, sizeof(read), room, (uint32_t)count, &got),
              DEVICE_SUCCESS);
  CHECK_EQUAL(got, count);
  add_bytes(out, room, got);
  free(room);
}

static struct ptkit_windows_buffer buffer_of(void* session, uint32_t cpu) {
  struct ptkit_windows_buffer buffer;
  memset(&buffer, 0, sizeof(buffer));
  buffer.cpu = cpu;
  CHECK_EQUAL(
      device_request(session, PTKIT_WINDOWS_BUFFER, &buffer, sizeof(buffer), &buffer, sizeof(buffer), NULL),
      DEVICE_SUCCESS);
  return buffer;
}

void consume_all(void* session, uint32_t cpu, struct bytes* out) {
  struct ptkit_status status = status_of(session, cpu);
  struct ptkit_windows_buffer buffer = buffer_of(session, cpu);
  struct ptkit_consume consume = {.cpu = cpu, .tail = status.head};
  CHECK(status.head - status.tail <= buffer.data_bytes);
  if (status.head == status.tail || buffer.data_bytes == 0) return;
  read_buffer(session, cpu, PTKIT_READ_DATA, status.tail % buffer.data_bytes, status.head - status.tail, out);
  CHECK_EQUAL(device_request(session, PTKIT_WINDOWS_CONSUME, &consume, sizeof(consume), NULL, 0, NULL),
              DEVICE_SUCCESS);
}

void consume_sideband(void* session, struct bytes* out) {
  struct ptkit_windows_buffer buffer = {.cpu = 0};
  struct ptkit_status status = {.cpu = 0};
  for (uint32_t cpu = 0; cpu < MODEL_CPUS && buffer.sideband_bytes == 0; cpu++) {
    buffer.cpu = cpu;
    status.cpu = cpu;
    if (device_request(session, PTKIT_WINDOWS_BUFFER, &buffer, sizeof(buffer), &buffer, sizeof(buffer),
                       NULL) != 0)
      continue;
    status = status_of(session, cpu);
  }
  CHECK(buffer.sideband_bytes != 0);
  if (status.sideband_head == status.sideband_tail || buffer.sideband_bytes == 0) return;
  struct ptkit_consume consume = {.cpu = status.cpu, .sideband_tail = status.sideband_head};
  read_buffer(session, 0, PTKIT_READ_SIDEBAND, status.sideband_tail % buffer.sideband_bytes,
              status.sideband_head - status.sideband_tail, out);
  CHECK_EQUAL(device_request(session, PTKIT_WINDOWS_CONSUME, &consume, sizeof(consume), NULL, 0, NULL),
              DEVICE_SUCCESS);
}

void set_model(void* device, uint32_t parameter, uint32_t cpu, uint64_t value) {
  struct model_set set = {parameter, cpu, value};
  CHECK_EQUAL(device_request(device, MODEL_SET, &set, sizeof(set), NULL, 0, NULL), DEVICE_SUCCESS);
}

void reset_model(void* device) { CHECK_EQUAL(command(device, MODEL_RESET), DEVICE_SUCCESS); }

struct model_registers registers_of(void* device, uint32_t cpu) {
  struct model_registers registers;
  memset(&registers, 0, sizeof(registers));
  CHECK_EQUAL(device_request(device, MODEL_REGISTERS, &cpu, sizeof(cpu), &registers, sizeof(registers), NULL),
              DEVICE_SUCCESS);
  return registers;
}

void put_registers(void* device, const struct model_registers* registers) {
  CHECK_EQUAL(device_request(device, MODEL_PUT_REGISTERS, registers, sizeof(*registers), NULL, 0, NULL),
              DEVICE_SUCCESS);
}

struct model_counts counts_of(void* device) {
  struct model_counts counts;
  memset(&counts, 0, sizeof(counts));
  CHECK_EQUAL(device_request(device, MODEL_COUNTS, NULL, 0, &counts, sizeof(counts), NULL), DEVICE_SUCCESS);
  return counts;
}

void execute(void* device, uint32_t cpu, uint32_t thread, uint64_t cr3, uint32_t blocks, struct bytes* log) {
  static _Thread_local uint64_t entries[MOST_BLOCKS];
  while (blocks != 0) {
    uint32_t now = blocks < MOST_BLOCKS ? blocks : MOST_BLOCKS;
    struct model_execute wanted = {cpu, thread, now, 0, cr3};
    uint32_t got = 0;
    int32_t status =
        device_request(device, MODEL_EXECUTE, &wanted, sizeof(wanted), entries, sizeof(entries), &got);
    CHECK_EQUAL(status, DEVICE_SUCCESS);
    if (status != DEVICE_SUCCESS) return;
    if (log != NULL) add_bytes(log, entries, got);
    blocks -= now;
  }
}

void tell(void* device, uint32_t event, uint32_t pid, uint32_t tid, bool begins) {
  struct model_tell told;
  memset(&told, 0, sizeof(told));
  told.event = event;
  told.begins = begins;
  told.pid = pid;
  told.tid = tid;
  CHECK_EQUAL(device_request(device, MODEL_TELL, &told, sizeof(told), NULL, 0, NULL), DEVICE_SUCCESS);
}

void sleep_ms(uint32_t ms) {
  void* event = host_make_event();
  host_wait(event, ms);
  host_end_event(event);
}
