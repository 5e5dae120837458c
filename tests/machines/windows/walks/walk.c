// SPDX-License-Identifier: MIT
/*
 * Has threads of the model execute code while the driver traces it. Streams, logs and registers go to files
 * in the working folder, for the tests of this folder to decode and compare.
 *
 *   image NAME FLAGS BLOCKS     the driver NAME, traced by its name: the file image.blocks has its code
 *   branches TURNS              the same code and a process' code in turns, to Branch Trace Store; two
 *                               threads of this program take turns, too
 *   filter FLAGS PROCESS [ACTION FIRST LAST]...
 *                               user code of two processes, kernel code, and code in real-address and
 *                               virtual-8086 mode in turns
 *   programs                    writes the code of random programs
 */
#include <stdlib.h>
#include <string.h>

#include "check.h"
#include "host.h"
#include "program.h"
#include "ptkit/rtit_regs.h"
#include "session.h"

#define CPU 0
#define MOST_LOADED 512 /* blocks in a request */
#define STRETCH 200
#define ROUNDS 8

int failures;
bool may_be_abandoned;

struct image {
  uint64_t base;
  uint64_t bytes;
  uint32_t count;
  struct model_block blocks[PROGRAM_MOST_BLOCKS];
};

static struct image read_image(void) {
  struct image image;
  memset(&image, 0, sizeof(image));
  FILE* file = fopen("image.blocks", "rb");
  CHECK(file != NULL);
  if (file == NULL) return image;
  CHECK_EQUAL(fread(&image.base, 8, 2, file), 2);
  image.count = (uint32_t)fread(image.blocks, sizeof(image.blocks[0]), PROGRAM_MOST_BLOCKS, file);
  fclose(file);
  return image;
}

static void load_image(void* device, const struct image* image) {
  static uint8_t request[sizeof(struct model_load) + MOST_LOADED * sizeof(struct model_block)];
  for (uint32_t first = 0; first < image->count; first += MOST_LOADED) {
    uint32_t left = image->count - first;
    struct model_load load = {image->base, first, left < MOST_LOADED ? left : MOST_LOADED};
    uint32_t bytes = load.count * (uint32_t)sizeof(struct model_block);
    memcpy(request, &load, sizeof(load));
    memcpy(request + sizeof(load), image->blocks + first, bytes);
    CHECK_EQUAL(device_request(device, MODEL_LOAD, request, (uint32_t)sizeof(load) + bytes, NULL, 0, NULL),
                DEVICE_SUCCESS);
  }
}

/* As the system does when it loads a driver. */
static void tell_image(void* device, const struct image* image, const char* name) {
  static const char folder[] = "\\SystemRoot\\System32\\drivers\\";
  struct model_tell told = {.event = MODEL_TELL_IMAGE, .begins = 1};
  char path[128];
  snprintf(path, sizeof(path), "%s%s", folder, name);
  told.address = image->base;
  told.bytes = image->bytes;
  told.path_bytes = (uint32_t)(2 * strlen(path));
  for (size_t i = 0; path[i] != 0; i++) told.path[i] = (uint8_t)path[i];
  CHECK_EQUAL(device_request(device, MODEL_TELL, &told, sizeof(told), NULL, 0, NULL), DEVICE_SUCCESS);
}

static struct image* prepare_image(void* device, const char* name) {
  static struct image image;
  image = read_image();
  load_image(device, &image);
  tell_image(device, &image, name);
  return &image;
}

/* The registers while it traces have the addresses of the module. */
static void check_range(void* session, const struct image* image) {
  struct model_registers registers = registers_of(session, CPU);
  CHECK_EQUAL(registers.ctl >> PT_CTL_ADDR0_CFG_SHIFT & 15, PT_ADDR_CFG_FILTER);
  CHECK_EQUAL(registers.addr[0], image->base);
  CHECK_EQUAL(registers.addr[1], image->base + image->bytes - 1);
}

static void* open_module_session(const struct image* image, const char* name, uint64_t flags) {
  struct ptkit_windows_config config = wake_up_config(CPU, 65536, 8192);
  config.config.flags = PTKIT_TRACE_KERNEL | PTKIT_TRACE_BRANCHES | flags;
  strncpy(config.module, name, sizeof(config.module) - 1);
  void* session = device_open();
  CHECK_EQUAL(device_request(session, PTKIT_WINDOWS_CONFIGURE, &config, sizeof(config), &config,
                             sizeof(config), NULL),
              DEVICE_SUCCESS);
  CHECK_EQUAL(config.module_base, image->base);
  CHECK_EQUAL(config.module_bytes, image->bytes);
  return session;
}

static void write_both(const char* name, uint32_t number, const char* kind, struct bytes* bytes,
                       struct bytes* log) {
  write_bytes(bytes, name, number, kind);
  write_bytes(log, name, number, "log");
  free_bytes(bytes);
  free_bytes(log);
}

static void trace_image(const char* name, uint64_t flags, uint32_t blocks) {
  struct bytes stream = {0}, log = {0};
  void* device = device_open();
  const struct image* image = prepare_image(device, name);
  void* session = open_module_session(image, name, flags);
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  check_range(session, image);
  for (uint32_t done = 0; done < blocks; done += STRETCH) {
    execute(session, CPU, MODEL_IMAGE_THREAD, USER_PROCESS << 16, STRETCH, &log);
    if (done / STRETCH % 8 == 7) consume_all(session, CPU, &stream);
  }
  CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  consume_all(session, CPU, &stream);
  CHECK_EQUAL(status_of(session, CPU).stops, 0);
  write_both("image", 0, "pt", &stream, &log);
  device_close(session);
  device_close(device);
}

/* A stay of a thread in a log: its number, that of the client's thread, and how many entries follow. */
static void execute_stay(void* session, uint32_t thread, uint64_t process, uint32_t blocks, uint32_t client,
                         struct bytes* log) {
  uint64_t head[] = {thread, client, blocks};
  add_bytes(log, head, sizeof(head));
  execute(session, CPU, thread, process << 16, blocks, log);
}

static struct {
  void* session;
  struct bytes log;
  bool resumes; /* what the next thread does */
  bool pauses;
} stored;

/* Code of the program and of the driver. At PTKIT_WINDOWS_RESUME and _PAUSE the driver notes who called. */
static void execute_some(void* unused) {
  uint32_t client = stored.resumes && stored.pauses ? host_thread() : 0;
  (void)unused;
  if (stored.resumes) CHECK_EQUAL(command(stored.session, PTKIT_WINDOWS_RESUME), DEVICE_SUCCESS);
  for (int i = 0; i < 2; i++) {
    execute_stay(stored.session, 0, USER_PROCESS, STRETCH, client, &stored.log);
    execute_stay(stored.session, MODEL_IMAGE_THREAD, USER_PROCESS, STRETCH, client, &stored.log);
  }
  if (stored.pauses) CHECK_EQUAL(command(stored.session, PTKIT_WINDOWS_PAUSE), DEVICE_SUCCESS);
}

static void execute_in(bool another_thread, bool resumes, bool pauses) {
  stored.resumes = resumes;
  stored.pauses = pauses;
  if (another_thread)
    host_join(host_begin_thread(execute_some, NULL));
  else
    execute_some(NULL);
}

/* Stretches of one thread of the client, of another one, and of both. */
static void store_branches(uint32_t turns) {
  struct bytes records = {0};
  struct ptkit_windows_config config = simple_config(CPU);
  void* device = device_open();
  prepare_image(device, "example.sys");
  config.config.output = PTKIT_OUTPUT_BTS;
  config.config.buffer_bytes = 1 << 21;
  stored.session = open_session(config);
  CHECK_EQUAL(command(stored.session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  CHECK_EQUAL(command(stored.session, PTKIT_WINDOWS_PAUSE), DEVICE_SUCCESS);
  for (uint32_t turn = 0; turn < turns; turn++) {
    execute_in(false, true, true);
    execute_in(true, true, true);
    execute_in(false, true, false);
    execute_in(true, false, true);
  }
  CHECK_EQUAL(command(stored.session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
  CHECK_EQUAL(status_of(stored.session, CPU).stops, 0);
  read_buffer(stored.session, CPU, PTKIT_READ_DATA, 0, status_of(stored.session, CPU).position, &records);
  write_both("branches", 0, "bts", &records, &stored.log);
  device_close(stored.session);
  device_close(device);
}

static struct ptkit_windows_config filter_config(int argc, char** argv) {
  struct ptkit_windows_config config = wake_up_config(CPU, 1 << 20, 65536);
  config.config.flags = PTKIT_TRACE_BRANCHES | strtoull(argv[0], NULL, 0);
  config.config.process = atoi(argv[1]);
  for (int i = 2; i + 2 < argc; i += 3) {
    struct ptkit_range* range = &config.config.ranges[config.config.range_count++];
    range->action = (uint32_t)atoi(argv[i]);
    range->first = strtoull(argv[i + 1], NULL, 0);
    range->last = strtoull(argv[i + 2], NULL, 0);
  }
  return config;
}

/* Each program in turns. Real-address mode has the CR3 of the first process, virtual-8086 mode of the other
 * one. */
static void execute_all(void* session, struct bytes* log) {
  for (int round = 0; round < ROUNDS; round++) {
    execute_stay(session, 0, USER_PROCESS, STRETCH, 0, log);
    execute_stay(session, 1, USER_PROCESS + 1, STRETCH, 0, log);
    execute_stay(session, MODEL_KERNEL_THREAD, USER_PROCESS, STRETCH, 0, log);
    execute_stay(session, MODEL_REAL_THREAD, USER_PROCESS, STRETCH, 0, log);
    execute_stay(session, MODEL_VIRTUAL_8086_THREAD, USER_PROCESS + 1, STRETCH, 0, log);
  }
}

/* A range where tracing stops does not keep the next PTKIT_WINDOWS_START or _RESUME from tracing. */
static void trace_filtered(int argc, char** argv) {
  void* session = open_session(filter_config(argc, argv));
  for (uint32_t turn = 0; turn < 2; turn++) {
    struct bytes stream = {0}, log = {0}, status = {0};
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
    execute_all(session, &log);
    if (turn == 1) {
      CHECK_EQUAL(command(session, PTKIT_WINDOWS_PAUSE), DEVICE_SUCCESS);
      CHECK_EQUAL(command(session, PTKIT_WINDOWS_RESUME), DEVICE_SUCCESS);
      execute_all(session, &log);
    }
    CHECK_EQUAL(command(session, PTKIT_WINDOWS_STOP), DEVICE_SUCCESS);
    consume_all(session, CPU, &stream);
    struct ptkit_status now = status_of(session, CPU);
    CHECK_EQUAL(now.stops, 0);
    add_bytes(&status, &now.rtit_status, sizeof(now.rtit_status));
    write_both("filter", turn, "pt", &stream, &log);
    write_bytes(&status, "filter", turn, "status");
    free_bytes(&status);
  }
  device_close(session);
}

static void write_programs(void) {
  void* device = device_open();
  for (uint32_t number = 0; number < MODEL_PROGRAM_IMAGE; number++) write_program(device, number);
  device_close(device);
}

static bool run(int argc, char** argv) {
  if (argc == 5 && strcmp(argv[1], "image") == 0)
    trace_image(argv[2], strtoull(argv[3], NULL, 0), (uint32_t)atoi(argv[4]));
  else if (argc == 3 && strcmp(argv[1], "branches") == 0)
    store_branches((uint32_t)atoi(argv[2]));
  else if (argc >= 4 && strcmp(argv[1], "filter") == 0)
    trace_filtered(argc - 2, argv + 2);
  else if (argc == 2 && strcmp(argv[1], "programs") == 0)
    write_programs();
  else
    return false;
  return true;
}

int main(int argc, char** argv) {
  setvbuf(stdout, NULL, _IONBF, 0);
  CHECK_EQUAL(driver_load(), 0);
  if (failures != 0) return 1;
  CHECK(run(argc, argv));
  CHECK_EQUAL(driver_unload(), 0);
  return failures != 0;
}
