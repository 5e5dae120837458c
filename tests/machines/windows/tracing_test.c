// SPDX-License-Identifier: MIT
/*
 * Instructions that the model executes, and trace that the driver hands over. Streams and logs go to files of
 * the case's name, for test_windows_driver.py to decode and compare.
 */
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "check.h"
#include "host.h"
#include "program.h"
#include "session.h"

#define MANY_BLOCKS 1100000 /* more than ten million instructions */

static void write_both(const char* name, uint32_t cpu, struct bytes* stream, struct bytes* log) {
  write_bytes(stream, name, cpu, "pt");
  write_bytes(log, name, cpu, "log");
  free_bytes(stream);
  free_bytes(log);
}

/* Entries of the log with this bit. */
static size_t count_entries(const struct bytes* log, uint64_t bit) {
  size_t count = 0;
  for (size_t i = 0; i < log->count; i += 8) {
    uint64_t entry;
    memcpy(&entry, log->all + i, 8);
    count += (entry & bit) != 0;
  }
  return count;
}

static bool all_traced(const struct bytes* log) {
  return count_entries(log, MODEL_LOG_TRACED) == log->count / 8;
}

void tells_what_processors_have(void) {
  struct ptkit_windows_query query = {0};
  void* device = device_open();
  uint32_t got = 0;
  CHECK_EQUAL(device_request(device, PTKIT_WINDOWS_QUERY, NULL, 0, &query, sizeof(query), &got),
              DEVICE_SUCCESS);
  CHECK_EQUAL(got, sizeof(query));
  CHECK_EQUAL(query.query.abi, PTKIT_ABI);
  CHECK_EQUAL(query.query.cpus, MODEL_CPUS);
  CHECK_EQUAL(query.query.tsc_khz, 3000000);
  CHECK_EQUAL(query.query.physical_bits, 39);
  CHECK_EQUAL(query.query.cpuid_14_1[0], 0x02490004);
  CHECK_EQUAL(query.reason, PTKIT_REASON_NONE);
  CHECK_EQUAL(query.system, PTKIT_SYSTEM_INTERRUPTS | PTKIT_SYSTEM_RE_ARMS);
  CHECK_EQUAL(query.query.features, PTKIT_FEATURE_TOPA | PTKIT_FEATURE_SINGLE_RANGE | PTKIT_FEATURE_PROCESS |
                                        PTKIT_FEATURE_PROCESS_BOTH | PTKIT_FEATURE_WAKE_UP |
                                        PTKIT_FEATURE_SIDEBAND | PTKIT_FEATURE_BTS | PTKIT_FEATURE_VMX);
  device_close(device);
}

void writes_the_programs(void) {
  void* device = device_open();
  write_program(device, MODEL_PROGRAM_USER);
  write_program(device, MODEL_PROGRAM_KERNEL);
  device_close(device);
}

/* A short trace, then one that fills the buffer: it ends there, whole. */
void traces_until_the_buffer_is_full(void) {
  struct bytes stream = {0}, log = {0};
  void* session = open_session(simple_config(1));
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  execute(session, 1, 0, 0, 1000, &log);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  struct ptkit_status status = status_of(session, 1);
  CHECK(status.position > 100 && status.position < 65536);
  CHECK_EQUAL(status.flags & PTKIT_STATUS_FULL, 0);
  CHECK(all_traced(&log));
  read_buffer(session, 1, PTKIT_READ_DATA, 0, status.position, &stream);
  write_both("traces_until_the_buffer_is_full", 1, &stream, &log);

  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  execute(session, 1, 0, 0, 200000, &log);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  status = status_of(session, 1);
  CHECK_EQUAL(status.position, 65536);
  CHECK(status.flags & PTKIT_STATUS_FULL);
  CHECK(!all_traced(&log));
  read_buffer(session, 1, PTKIT_READ_DATA, 0, status.position, &stream);
  write_both("traces_until_the_buffer_is_full", 2, &stream, &log);
  device_close(session);
}

/* Reads after each stretch, as often as the buffer holds. */
static void trace_and_consume(void* session, uint32_t cpu, uint32_t thread, uint64_t cr3, uint32_t blocks,
                              struct bytes* stream, struct bytes* log) {
  while (blocks != 0) {
    uint32_t now = blocks < 2000 ? blocks : 2000;
    execute(session, cpu, thread, cr3, now, log);
    consume_all(session, cpu, stream);
    blocks -= now;
  }
}

void hands_over_while_it_traces(void) {
  struct bytes stream = {0}, log = {0};
  struct ptkit_windows_config config = wake_up_config(0, 65536, 8192);
  config.config.flags |= PTKIT_TRACE_TSC;
  void* session = open_session(config);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  trace_and_consume(session, 0, 0, 0, MANY_BLOCKS, &stream, &log);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  consume_all(session, 0, &stream);
  CHECK_EQUAL(status_of(session, 0).stops, 0);
  CHECK(counts_of(session).interrupts > 10);
  CHECK(stream.count > 8 * 65536);
  CHECK(all_traced(&log));
  write_both("hands_over_while_it_traces", 0, &stream, &log);
  device_close(session);
}

static struct {
  void* session;
  volatile bool over;
  struct bytes stream;
  uint32_t waits;
} reader;

/* As a client does it: waits, and reads what is there. */
static void read_all(void* unused) {
  (void)unused;
  while (!reader.over) {
    struct ptkit_windows_wait wait = {0};
    int32_t status = device_request(reader.session, PTKIT_WINDOWS_WAIT, NULL, 0, &wait, sizeof(wait), NULL);
    CHECK_EQUAL(status, DEVICE_SUCCESS);
    if (status != DEVICE_SUCCESS) return;
    reader.waits++;
    consume_all(reader.session, 0, &reader.stream);
    if (wait.events & PTKIT_EVENT_STOPPED) return;
  }
}

void hands_over_to_another_thread(void) {
  struct bytes log = {0};
  memset(&reader, 0, sizeof(reader));
  reader.session = open_session(wake_up_config(0, 1 << 20, 65536));
  CHECK_EQUAL(command(reader.session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  void* thread = host_begin_thread(read_all, NULL);
  for (int i = 0; i < 100; i++) {
    execute(reader.session, 0, 0, 0, 2000, &log);
    host_yield();
  }
  CHECK_EQUAL(command(reader.session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  host_join(thread);
  consume_all(reader.session, 0, &reader.stream);
  CHECK(reader.waits > 2);
  struct ptkit_status status = status_of(reader.session, 0);
  CHECK_EQUAL(status.head, status.tail);
  CHECK_EQUAL(status.head, reader.stream.count);
  if (status.stops == 0) CHECK(all_traced(&log));
  write_both("hands_over_to_another_thread", 0, &reader.stream, &log);
  device_close(reader.session);
}

/* Seed 000's driver cut the last buffer at the first run of zeros. Here the last bytes are compared, of many
 * ends. */
void loses_nothing_at_the_end(void) {
  void* session = open_session(wake_up_config(2, 65536, 8192));
  for (uint32_t i = 0; i < 40; i++) {
    struct bytes stream = {0}, log = {0};
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
    trace_and_consume(session, 2, 1, 0, 100 * i + 1, &stream, &log);
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
    consume_all(session, 2, &stream);
    CHECK(all_traced(&log));
    write_both("loses_nothing_at_the_end", i, &stream, &log);
  }
  CHECK_EQUAL(counts_of(session).dropped_bytes, 0);
  device_close(session);
}

static void take_snapshot(void* session, uint32_t cpu, uint64_t room, struct bytes* stream) {
  struct ptkit_windows_snapshot snapshot = {cpu, 0};
  uint8_t* answer = malloc(sizeof(struct ptkit_windows_newest) + room);
  struct ptkit_windows_newest newest = {0};
  uint32_t got = 0;
  int32_t status = device_request(session, PTKIT_WINDOWS_SNAPSHOT, &snapshot, sizeof(snapshot), answer,
                                  (uint32_t)(sizeof(newest) + room), &got);
  CHECK_EQUAL(status, DEVICE_SUCCESS);
  if (status == DEVICE_SUCCESS) memcpy(&newest, answer, sizeof(newest));
  CHECK_EQUAL(got, sizeof(newest) + newest.bytes);
  add_bytes(stream, answer + sizeof(newest), newest.bytes);
  free(answer);
}

/* The log goes on. */
static void write_stretch(const char* name, uint32_t number, struct bytes* stream, const struct bytes* log) {
  write_bytes(stream, name, number, "pt");
  write_bytes(log, name, number, "log");
  free_bytes(stream);
}

static void keep_newest(const char* name, uint32_t output) {
  struct bytes stream = {0}, log = {0};
  struct ptkit_windows_config config = simple_config(0);
  config.config.mode = PTKIT_MODE_RING;
  config.config.output = output;
  void* session = open_session(config);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  execute(session, 0, 0, 0, 3000, &log);
  take_snapshot(session, 0, 65536, &stream);
  CHECK(stream.count < 65536);
  write_stretch(name, 0, &stream, &log);
  execute(session, 0, 0, 0, 200000, &log);
  take_snapshot(session, 0, 65536, &stream);
  CHECK_EQUAL(stream.count, 65536);
  write_stretch(name, 1, &stream, &log);
  execute(session, 0, 0, 0, 10000, &log);
  take_snapshot(session, 0, 20000, &stream);
  CHECK_EQUAL(stream.count, 20000);
  write_stretch(name, 2, &stream, &log);
  execute(session, 0, 0, 0, 1000, &log);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  struct ptkit_status status = status_of(session, 0);
  CHECK(status.flags & PTKIT_STATUS_LAPPED);
  read_buffer(session, 0, PTKIT_READ_DATA, status.position, 65536, &stream);
  CHECK(all_traced(&log));
  write_stretch(name, 3, &stream, &log);
  free_bytes(&log);
  device_close(session);
}

void keeps_the_newest_bytes(void) { keep_newest("keeps_the_newest_bytes", PTKIT_OUTPUT_TOPA); }

void keeps_the_newest_bytes_of_one_range(void) {
  keep_newest("keeps_the_newest_bytes_of_one_range", PTKIT_OUTPUT_SINGLE_RANGE);
}

void goes_on_after_a_pause(void) {
  struct bytes stream = {0}, log = {0};
  void* session = open_session(wake_up_config(3, 65536, 8192));
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  for (int i = 0; i < 20; i++) {
    trace_and_consume(session, 3, 0, 0, 3000, &stream, &log);
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_PAUSE), DEVICE_SUCCESS);
    size_t traced = count_entries(&log, MODEL_LOG_TRACED);
    execute(session, 3, 0, 0, 500, &log);
    CHECK_EQUAL(count_entries(&log, MODEL_LOG_TRACED), traced);
    CHECK_EQUAL(status_of(session, 3).flags & PTKIT_STATUS_RUNNING, 0);
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_RESUME), DEVICE_SUCCESS);
  }
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  consume_all(session, 3, &stream);
  CHECK_EQUAL(count_entries(&log, MODEL_LOG_TRACED), 60000);
  write_both("goes_on_after_a_pause", 3, &stream, &log);
  device_close(session);
}

/* All processors of one session; two threads take turns on each of them. */
void follows_a_thread_from_cpu_to_cpu(void) {
  struct bytes streams[MODEL_CPUS] = {{0}}, logs[MODEL_CPUS] = {{0}};
  struct ptkit_windows_config config = wake_up_config(0, 65536, 8192);
  config.config.target = PTKIT_TARGET_AFFINITY;
  config.affinity[0] = (1 << MODEL_CPUS) - 1;
  void* session = open_session(config);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  for (uint32_t i = 0; i < 200; i++) {
    uint32_t cpu = i * 7 % MODEL_CPUS;
    execute(session, cpu, i % 2, 0x10000 * (1 + i % 2), 700, &logs[cpu]);
    consume_all(session, cpu, &streams[cpu]);
  }
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  for (uint32_t cpu = 0; cpu < MODEL_CPUS; cpu++) {
    consume_all(session, cpu, &streams[cpu]);
    CHECK(all_traced(&logs[cpu]));
    write_both("follows_a_thread_from_cpu_to_cpu", cpu, &streams[cpu], &logs[cpu]);
  }
  device_close(session);
}

/* Two threads take turns on a processor; the one of the process alone is traced. */
void traces_one_process(void) {
  struct bytes stream = {0}, log = {0};
  struct ptkit_windows_config config = wake_up_config(1, 65536, 8192);
  config.config.process = USER_PROCESS;
  void* session = open_session(config);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  for (uint32_t i = 0; i < 60; i++) {
    uint32_t thread = i % 2;
    struct bytes part = {0};
    trace_and_consume(session, 1, thread, (USER_PROCESS + thread) << 16, 900, &stream, &part);
    CHECK_EQUAL(count_entries(&part, MODEL_LOG_TRACED), thread == 0 ? 900 : 0);
    add_bytes(&log, part.all, part.count);
    free_bytes(&part);
  }
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  consume_all(session, 1, &stream);
  write_both("traces_one_process", 1, &stream, &log);
  device_close(session);
}

/* A user's thread and one of the kernel take turns. */
void traces_user_code_alone(void) {
  for (uint32_t kernel = 0; kernel < 2; kernel++) {
    struct bytes stream = {0}, log = {0};
    struct ptkit_windows_config config = wake_up_config(1, 65536, 8192);
    config.config.flags = PTKIT_TRACE_BRANCHES | (kernel ? PTKIT_TRACE_KERNEL : PTKIT_TRACE_USER);
    void* session = open_session(config);
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
    for (uint32_t i = 0; i < 40; i++)
      trace_and_consume(session, 1, i % 2 ? MODEL_KERNEL_THREAD : 0, 0x10000, 900, &stream, &log);
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
    consume_all(session, 1, &stream);
    CHECK_EQUAL(count_entries(&log, MODEL_LOG_TRACED), 20 * 900);
    write_both("traces_user_code_alone", kernel, &stream, &log);
    device_close(session);
  }
}

/* Whether a block of the user's program ends with a jump or a return. */
static bool leads_away(const uint8_t* code, uint32_t block) {
  const uint8_t* end = code + (block + 1) * PROGRAM_BLOCK_BYTES;
  return end[-5] == 0xe9 || end[-1] == 0xc3 || (end[-2] == 0xff && end[-1] == 0xe0);
}

/*
 * In the middle of the program. No code runs straight into it or out of it: after that, a branch to an
 * address that was passed meanwhile cannot be told from one that came before.
 */
static struct ptkit_range middle_range(void) {
  static uint8_t answer[sizeof(struct model_program) + PROGRAM_BYTES];
  const uint8_t* code = answer + sizeof(struct model_program);
  uint32_t user = MODEL_PROGRAM_USER, first = 128, end = 384;
  void* device = device_open();
  CHECK_EQUAL(device_request(device, MODEL_PROGRAM, &user, sizeof(user), answer, sizeof(answer), NULL),
              DEVICE_SUCCESS);
  device_close(device);
  while (first < end && !leads_away(code, first - 1)) first++;
  while (first < end && !leads_away(code, end - 1)) end--;
  return (struct ptkit_range){.first = PROGRAM_USER_BASE + first * PROGRAM_BLOCK_BYTES,
                              .last = PROGRAM_USER_BASE + end * PROGRAM_BLOCK_BYTES - 1,
                              .action = PTKIT_RANGE_FILTER};
}

void traces_a_range(void) {
  struct bytes stream = {0}, log = {0};
  struct ptkit_windows_config config = wake_up_config(0, 65536, 8192);
  config.config.range_count = 1;
  config.config.ranges[0] = middle_range();
  void* session = open_session(config);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  trace_and_consume(session, 0, 0, 0, 40000, &stream, &log);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  consume_all(session, 0, &stream);
  size_t traced = count_entries(&log, MODEL_LOG_TRACED);
  CHECK(traced > 10000 && traced < 30000);
  write_both("traces_a_range", 0, &stream, &log);
  device_close(session);
}

void compresses_returns_or_not(void) {
  uint64_t sizes[2];
  for (uint32_t i = 0; i < 2; i++) {
    struct bytes stream = {0}, log = {0};
    struct ptkit_windows_config config = wake_up_config(0, 1 << 20, 65536);
    config.config.flags |= i ? PTKIT_TRACE_NO_RETC : 0;
    void* session = open_session(config);
    reset_model(session);
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
    trace_and_consume(session, 0, 0, 0, 50000, &stream, &log);
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
    consume_all(session, 0, &stream);
    sizes[i] = stream.count;
    write_both("compresses_returns_or_not", i, &stream, &log);
    device_close(session);
  }
  CHECK(sizes[1] > sizes[0] + 5000);
}

/* Nobody reads: tracing stops before it overwrites, says so, and goes on when there is room. */
void waits_for_the_reader(void) {
  void* session = open_session(wake_up_config(0, 65536, 8192));
  uint64_t read = 0;
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  for (uint32_t i = 0; i < 5; i++) {
    struct bytes stream = {0}, log = {0};
    execute(session, 0, 0, 0, 120000, &log);
    struct ptkit_status status = status_of(session, 0);
    CHECK(status.flags & PTKIT_STATUS_FULL);
    CHECK_EQUAL(status.stops, i + 1);
    CHECK_EQUAL(status.stopped_at[0], status.head);
    CHECK(!all_traced(&log));
    consume_all(session, 0, &stream);
    CHECK_EQUAL(status_of(session, 0).flags & PTKIT_STATUS_FULL, 0);
    read += stream.count;
    write_both("waits_for_the_reader", i, &stream, &log);
  }
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  CHECK_EQUAL(status_of(session, 0).tail, read);
  device_close(session);
}

void goes_on_after_sleep(void) {
  struct bytes stream = {0}, log = {0};
  void* session = open_session(wake_up_config(0, 65536, 8192));
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  trace_and_consume(session, 0, 0, 0, 2000, &stream, &log);
  tell(session, MODEL_TELL_POWER, 0, 0, false);
  execute(session, 0, 0, 0, 300, &log);
  CHECK_EQUAL(count_entries(&log, MODEL_LOG_TRACED), 2000);
  struct model_registers lost = {.cpu = 0};
  put_registers(session, &lost);
  tell(session, MODEL_TELL_POWER, 0, 0, true);
  trace_and_consume(session, 0, 0, 0, 2000, &stream, &log);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  consume_all(session, 0, &stream);
  CHECK_EQUAL(count_entries(&log, MODEL_LOG_TRACED), 4000);
  write_both("goes_on_after_sleep", 0, &stream, &log);
  device_close(session);
}
