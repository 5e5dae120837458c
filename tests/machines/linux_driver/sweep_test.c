// SPDX-License-Identifier: MIT
/*
 * Neighbours of the driver between any two of its accesses: a sweep over all insertion points of a session.
 * The model says what the unit dropped, and what happened to the neighbours (tests/machines/model/kernel/world.h).
 */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "check.h"
#include "machine.h"

#define PARAMETERS "/sys/module/ptkit/parameters/"
#define SEED 7 /* of the values that other users left */
#define MOST_POINTS 2000
#define MOST_LOSSES 16
#define BUFFER_BYTES 16384
#define WAKE_UP_BYTES 4096
#define UNTIL_IT_LEAVES 1000000 /* insertion points */

/* world.h of the model has the same numbers. */
enum neighbour { ALONE, COUNTER, PERF_TRACE, VMX, FIRMWARE, CODE };

struct variant {
  const char* name;
  enum neighbour neighbour;
  int bytes; /* that the unit writes because of the neighbour */
  int lasts; /* insertion points until VMXOFF */
  bool reraises;
  bool reserves; /* perf has its PMU intel_pt */
  bool late;     /* interrupts of the unit, by so many insertion points */
  bool ring;
};

static const struct variant variants[] = {
    {.name = "perf's counter", .neighbour = COUNTER},
    {.name = "perf's counter, traced for a region", .neighbour = COUNTER, .bytes = 5000},
    {.name = "perf's counter, traced until STOP", .neighbour = COUNTER, .bytes = 40000},
    {.name = "perf's counter, ring", .neighbour = COUNTER, .bytes = 5000, .ring = true},
    {.name = "interrupts that come again", .neighbour = COUNTER, .reraises = true},
    {.name = "interrupts that come again, and STOP", .neighbour = COUNTER, .bytes = 40000, .reraises = true},
    {.name = "late interrupts", .late = true},
    {.name = "perf's intel_pt", .neighbour = PERF_TRACE, .bytes = 100, .reserves = true},
    {.name = "perf's intel_pt, ring", .neighbour = PERF_TRACE, .bytes = 100, .reserves = true, .ring = true},
    {.name = "a tracer that reserves nothing", .neighbour = PERF_TRACE, .bytes = 100},
    {.name = "a tracer that reserves nothing, ring", .neighbour = PERF_TRACE, .bytes = 100, .ring = true},
    {.name = "VMXON and VMXOFF", .neighbour = VMX},
    {.name = "VMXON, VMXOFF soon", .neighbour = VMX, .lasts = 5},
    {.name = "VMXON, VMXOFF late", .neighbour = VMX, .lasts = UNTIL_IT_LEAVES},
    {.name = "VMXON, VMXOFF late, ring", .neighbour = VMX, .lasts = UNTIL_IT_LEAVES, .ring = true},
    {.name = "firmware", .neighbour = FIRMWARE},
    {.name = "the driver's own code, for a region", .neighbour = CODE, .bytes = 5000},
    {.name = "the driver's own code until STOP", .neighbour = CODE, .bytes = 40000},
};

static long number_of(const char* parameter) {
  char path[128];
  snprintf(path, sizeof(path), PARAMETERS "%s", parameter);
  return read_number(path, "");
}

struct text {
  char text[1024];
};

static struct text text_of(const char* parameter) {
  struct text text = {""};
  char path[128];
  snprintf(path, sizeof(path), PARAMETERS "%s", parameter);
  FILE* file = fopen(path, "r");
  CHECK(file != NULL);
  if (file == NULL) return text;
  text.text[fread(text.text, 1, sizeof(text.text) - 1, file)] = '\0';
  fclose(file);
  return text;
}

/* A reader as the recorder is: it looks every 20 ms. */
struct reader {
  int session;
  const uint8_t* data;
  uint64_t bytes;
  uint64_t read;
  uint8_t last; /* value that was read; 0: none */
  uint64_t stops;
  uint64_t clears;
  uint64_t losses[64]; /* where the driver says that bytes are missing */
  unsigned loss_count;
};

static void add_loss(struct reader* reader, uint64_t offset) {
  CHECK(reader->loss_count < 64);
  if (reader->loss_count < 64) reader->losses[reader->loss_count++] = offset;
}

static void read_losses(struct reader* reader, const struct ptkit_status* status) {
  uint64_t stops = status->stops - reader->stops;
  CHECK(stops <= 2); /* the driver has the offsets of two */
  for (uint64_t i = 0; i < stops && i < 2; i++) add_loss(reader, status->stopped_at[i]);
  if (status->clears != reader->clears) add_loss(reader, status->cleared_at);
  if (status->error != 0) add_loss(reader, status->head);
  reader->stops = status->stops;
  reader->clears = status->clears;
}

static void look(struct reader* reader) {
  struct ptkit_status status = status_of(reader->session, 0);
  read_losses(reader, &status);
  CHECK(status.head - reader->read <= reader->bytes);
  for (; reader->read < status.head && failures == 0; reader->read++) {
    uint8_t value = reader->data[reader->read % reader->bytes];
    if (reader->last != 0) CHECK_EQUAL(value, reader->last == 251 ? 1 : reader->last + 1);
    reader->last = value;
  }
  struct ptkit_consume consume = {.cpu = 0, .tail = reader->read};
  CHECK_EQUAL(ioctl(reader->session, PTKIT_CONSUME, &consume), 0);
  if (status.error != 0) ioctl(reader->session, PTKIT_RESUME); /* it fails until VMXOFF */
}

static struct reader open_reader(bool ring, pid_t task) {
  struct ptkit_config config = simple_config(0);
  struct reader reader = {0};
  config.task = task;
  if (task != 0) config.target = PTKIT_TARGET_TASK;
  config.buffer_bytes = BUFFER_BYTES;
  config.range_count = 1;
  config.ranges[0] = (struct ptkit_range){0x1000, 0x1fff, PTKIT_RANGE_FILTER, 0};
  if (ring)
    config.mode = PTKIT_MODE_RING;
  else
    config.wake_up_bytes = WAKE_UP_BYTES;
  reader.session = open_session(config);
  reader.data = map_buffer(reader.session, 0, &reader.bytes);
  return reader;
}

static void execute(int bytes) { set_parameter("world_execute", bytes); }

/* In VMX operation the unit cannot trace. */
static void request(const struct variant* variant, const struct reader* reader, unsigned long number) {
  int failed = ioctl(reader->session, number);
  if (failed == 0 || variant->neighbour != VMX) CHECK_EQUAL(failed, 0);
  if (failed == 0 || number != PTKIT_START) return;
  set_parameter("world_leave", 0);
  CHECK_EQUAL(ioctl(reader->session, number), 0);
}

static bool has_come(void) { return number_of("world_point") == 0; }

/* Within two looks after the neighbour the unit writes again what traced code causes. */
static void check_progress(struct reader* reader) {
  bool came;
  long written;
  do {
    came = has_come();
    set_parameter("world_leave", 0);
    look(reader);
    look(reader);
    written = number_of("world_written");
    execute(64);
  } while (!came && has_come());
  CHECK(number_of("world_written") - written >= 64);
}

static bool has_loss(const struct reader* reader, uint64_t offset) {
  for (unsigned i = 0; i < reader->loss_count; i++)
    if (reader->losses[i] == offset) return true;
  return false;
}

/* Each offset at which the unit dropped bytes is one that the driver has reported. */
static void check_losses(const struct reader* reader) {
  struct text losses = text_of("world_losses");
  unsigned count = 0;
  for (char* line = strtok(losses.text, "\n"); line != NULL; line = strtok(NULL, "\n")) {
    CHECK(has_loss(reader, strtoull(line, NULL, 10)));
    if (failures) printf("# the unit dropped (offset, bytes): %s\n", line);
    count++;
  }
  CHECK(count < MOST_LOSSES);
}

static void use_with_wake_ups(const struct variant* variant) {
  static const int stretches[] = {3000, 9000, 5000, 20000};
  struct reader reader = open_reader(false, 0);
  request(variant, &reader, PTKIT_START);
  for (size_t i = 0; i < sizeof(stretches) / sizeof(stretches[0]); i++) {
    execute(stretches[i]);
    look(&reader);
    if (i != 1) continue;
    request(variant, &reader, PTKIT_PAUSE);
    execute(100);
    request(variant, &reader, PTKIT_RESUME);
  }
  check_progress(&reader);
  if (variant->late) execute(WAKE_UP_BYTES); /* the interrupt comes during STOP, or in the next session */
  CHECK_EQUAL(ioctl(reader.session, PTKIT_STOP), 0);
  look(&reader);
  CHECK_EQUAL(reader.read, number_of("world_written"));
  check_losses(&reader);
  munmap((void*)reader.data, reader.bytes);
  close(reader.session);
}

static void use_ring(const struct variant* variant) {
  struct reader reader = open_reader(true, 0);
  request(variant, &reader, PTKIT_START);
  execute(9000);
  request(variant, &reader, PTKIT_PAUSE);
  execute(100);
  request(variant, &reader, PTKIT_RESUME);
  execute(20000);
  set_parameter("world_leave", 0);
  CHECK_EQUAL(ioctl(reader.session, PTKIT_STOP), 0);
  struct ptkit_status status = status_of(reader.session, 0);
  CHECK_EQUAL(status.position, number_of("world_written") % BUFFER_BYTES);
  CHECK(text_of("world_losses").text[0] == '\0' || status.error != 0 || status.clears != 0);
  munmap((void*)reader.data, reader.bytes);
  close(reader.session);
}

static void use_unit(const struct variant* variant) {
  if (variant->ring) return use_ring(variant);
  use_with_wake_ups(variant);
  if (!variant->late) return;
  set_parameter("world_point", -1); /* counts begin again */
  use_with_wake_ups(variant);
}

/* Complaints of the neighbours. */
static void check_neighbours(void) {
  CHECK_EQUAL(number_of("world_idle"), 0);
  CHECK_EQUAL(number_of("world_strays"), 0);
  CHECK_EQUAL(number_of("world_faults"), 0);
  CHECK_EQUAL(number_of("world_misplaced"), 0);
  CHECK_EQUAL(number_of("world_unknown"), 0);
  CHECK_EQUAL(number_of("world_counted"), number_of("world_overflows"));
  CHECK_EQUAL(number_of("world_masked"), 0);
  CHECK_EQUAL(number_of("model_enabled"), 0);
}

static void set_variant(const struct variant* variant, int point) {
  set_parameter("world_neighbour", variant->neighbour);
  set_parameter("world_bytes", variant->bytes);
  set_parameter("world_lasts", variant->lasts);
  set_parameter("world_reraises", variant->reraises);
  set_parameter("world_looks", !variant->reserves);
  set_parameter("model_interrupt_after", variant->late ? point : 0);
  set_parameter("model_interrupt_waits", 1);
}

static bool registers_are(const struct text* before) {
  struct text now = text_of("model_registers");
  bool same = strcmp(now.text, before->text) == 0;
  if (!same) printf("# before: %s# now: %s", before->text, now.text);
  return same;
}

/* A session with the neighbour at this insertion point; whether there is that one. */
static bool use_with(const struct variant* variant, int point) {
  set_variant(variant, point);
  set_parameter("model_registers", SEED);
  set_parameter("world_tracer", 1);
  set_parameter("world_run_task", 100); /* it leaves its registers */
  long tasks = number_of("world_tasks");
  long interrupts = number_of("model_interrupts");
  struct text before = text_of("model_registers");
  set_parameter("world_point", variant->late ? -1 : point);
  use_unit(variant);
  bool came = variant->late ? number_of("model_interrupts") != interrupts : has_come();
  if (number_of("world_tasks") == tasks) CHECK(registers_are(&before));
  set_parameter("world_leave", 0);
  set_parameter("world_run_task", 100);
  CHECK(number_of("world_tasks") > tasks);
  check_neighbours();
  return came;
}

static void load_world(bool reserves) {
  CHECK_EQUAL(load_module_with(MODEL_MODULE, reserves ? "model_vmx=0 model_pmu=1 world_perf=1"
                                                      : "model_vmx=0 world_perf=1"),
              0);
  set_parameter("model_bytes", 0);
}

static void unload_world(bool reserves) {
  set_parameter("world_tracer", 0);
  set_parameter("world_perf", 0);
  usleep(100000); /* events are freed after a grace period of RCU */
  if (reserves) set_parameter("model_pmu", 0);
  CHECK_EQUAL(unload_module(), 0);
}

static int sweep(const struct variant* variant) {
  int point = 0;
  load_world(variant->reserves);
  while (point < MOST_POINTS && use_with(variant, point) && failures == 0) point++;
  if (failures) printf("# %s at insertion point %d\n", variant->name, point);
  CHECK(point < MOST_POINTS);
  printf("# %s: %d insertion points in all requests; the last session: %ld accesses, %ld stretches of code\n",
         variant->name, point, number_of("world_accesses"), number_of("world_stretches"));
  unload_world(variant->reserves);
  return point;
}

void goes_on_beside_neighbours(void) {
  int points = 0;
  CHECK_EQUAL(unload_module(), 0);
  for (size_t i = 0; i < sizeof(variants) / sizeof(variants[0]) && failures == 0; i++) {
    int of_variant = sweep(&variants[i]);
    CHECK(failures != 0 || of_variant > 20);
    points += of_variant;
  }
  printf("# %d insertion points in all requests\n", points);
  CHECK_EQUAL(load_module(MODEL_MODULE), 0);
}

#define TURNS 50

/* A task of another tracer, on the processor of the thread that the driver traces. */
static void run_other_task(void) {
  for (int i = 0; i < TURNS; i++) {
    set_parameter("world_run_task", 100);
    usleep(1000);
  }
  _exit(failures != 0);
}

/* The driver loads and unloads registers at context switches; the other tracer keeps copies of its own. */
void shares_a_processor_by_switches(void) {
  const struct variant variant = {.name = "another tracer"};
  cpu_set_t first;
  cpu_set_t all;
  CHECK_EQUAL(sched_getaffinity(0, sizeof(all), &all), 0);
  CPU_ZERO(&first);
  CPU_SET(0, &first);
  CHECK_EQUAL(sched_setaffinity(0, sizeof(first), &first), 0);
  CHECK_EQUAL(unload_module(), 0);
  load_world(false);
  set_variant(&variant, 0);
  set_parameter("world_tracer", 1);
  set_parameter("world_point", -1);
  struct reader reader = open_reader(false, getpid());
  CHECK_EQUAL(ioctl(reader.session, PTKIT_START), 0);
  pid_t child = fork();
  if (child == 0) run_other_task();
  int status = 0;
  while (waitpid(child, &status, WNOHANG) == 0) {
    execute(700);
    look(&reader);
    usleep(700);
  }
  CHECK_EQUAL(status, 0);
  CHECK_EQUAL(number_of("world_tasks"), TURNS);
  CHECK_EQUAL(ioctl(reader.session, PTKIT_STOP), 0);
  look(&reader);
  CHECK(reader.read > 700 * 10);
  CHECK_EQUAL(reader.read, number_of("world_written"));
  check_losses(&reader);
  check_neighbours();
  munmap((void*)reader.data, reader.bytes);
  close(reader.session);
  unload_world(false);
  CHECK_EQUAL(sched_setaffinity(0, sizeof(all), &all), 0);
  CHECK_EQUAL(load_module(MODEL_MODULE), 0);
}
