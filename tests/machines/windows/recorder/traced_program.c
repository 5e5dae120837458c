// SPDX-License-Identifier: MIT
/*
 * A program that is recorded: its instructions are the model's, on all of its processors.
 *
 *   hold FILE            loads the driver's test build, writes FILE, and unloads it when FILE is gone: Wine
 *                        ends its services with the last program
 *   code NUMBER FILE     writes the code of one of the model's programs (MODEL_PROGRAM_*)
 *   play FOLDER          does what the lines of FOLDER/script say. What was executed is in FOLDER/log.u64,
 *                        ETW's events of it are in FOLDER/events
 *
 * Lines of a script. PID 0 is this process; the model's page tables are those of its number:
 *
 *   image PID ADDRESS BYTES PATH   PATH, as the kernel names it, was mapped
 *   process PID                    process PID began
 *   thread PID TID                 ETW knows this thread of PID
 *   run CPU THREAD TID PID BLOCKS  the model's THREAD, which ETW knows as TID, executes blocks on CPU
 *   unload PID ADDRESS BYTES       ETW: the image was unloaded
 *   loss COUNT                     ETW: events were lost
 *   cut CPU                        ETW: an event that is too short
 *   close                          closes the program's handle of the driver, and opens another one
 *   mark NAME                      writes FOLDER/NAME, with the number of this process
 *   wait NAME                      until FOLDER/NAME is there
 *   traced COUNT                   until so many of the processors are traced (TraceEn)
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "device.h"
#include "events.h"

#define BLOCKS_AT_ONCE 400
#define MOST_LINE 512

struct play {
  const char* folder;
  void* device;
  FILE* log;
  FILE* events;
  uint32_t running[MODEL_CPUS]; /* thread, as ETW knows it */
};

static int failed(const char* what, int32_t status) {
  fprintf(stderr, "%s: 0x%x\n", what, (unsigned)status);
  return 1;
}

static int write_file(const char* path, const void* bytes, size_t count) {
  FILE* file = fopen(path, "wb");
  if (file == NULL) return failed(path, -1);
  size_t written = fwrite(bytes, 1, count, file);
  return fclose(file) != 0 || written != count ? failed(path, -1) : 0;
}

static int write_code(void* device, uint32_t number, const char* path) {
  static uint8_t answer[65536];
  uint32_t got = 0;
  int32_t status =
      device_request(device, MODEL_PROGRAM, &number, sizeof(number), answer, sizeof(answer), &got);
  if (status != DEVICE_SUCCESS || got <= sizeof(struct model_program)) return failed("MODEL_PROGRAM", status);
  return write_file(path, answer + sizeof(struct model_program), got - sizeof(struct model_program));
}

static uint32_t process(uint32_t pid) { return pid != 0 ? pid : GetCurrentProcessId(); }

static int tell(struct play* play, const struct model_tell* event) {
  int32_t status = device_request(play->device, MODEL_TELL, event, sizeof(*event), NULL, 0, NULL);
  return status != DEVICE_SUCCESS ? failed("MODEL_TELL", status) : 0;
}

/* An event of now. */
static int add_event(struct play* play, struct event event) {
  struct model_counts counts;
  int32_t status = device_request(play->device, MODEL_COUNTS, NULL, 0, &counts, sizeof(counts), NULL);
  if (status != DEVICE_SUCCESS) return failed("MODEL_COUNTS", status);
  event.tsc = counts.tsc;
  if (fwrite(&event, sizeof(event), 1, play->events) != 1 || fflush(play->events) != 0)
    return failed("the events", -1);
  return 0;
}

/* --- Lines --- */

static int do_image(struct play* play, const char* line) {
  struct model_tell event = {.event = MODEL_TELL_IMAGE, .begins = 1};
  char path[129] = "";
  if (sscanf(line, "%u %llx %llx %128[^\n\r]", &event.pid, &event.address, &event.bytes, path) != 4) return 2;
  event.pid = process(event.pid);
  for (size_t i = 0; path[i] != 0; i++) event.path[i] = (uint8_t)path[i];
  event.path_bytes = (uint32_t)(2 * strlen(path));
  return tell(play, &event);
}

static int do_process(struct play* play, const char* line) {
  struct model_tell event = {.event = MODEL_TELL_PROCESS, .begins = 1, .tid = GetCurrentProcessId()};
  return sscanf(line, "%u", &event.pid) != 1 ? 2 : tell(play, &event);
}

static int do_thread(struct play* play, const char* line) {
  struct event event = {.kind = EVENT_THREAD};
  if (sscanf(line, "%u %u", &event.first, &event.second) != 2) return 2;
  event.first = process(event.first);
  return add_event(play, event);
}

static int execute(struct play* play, const struct model_execute* wanted) {
  static uint64_t entries[3 + BLOCKS_AT_ONCE];
  uint32_t got = 0;
  int32_t status = device_request(play->device, MODEL_EXECUTE, wanted, sizeof(*wanted), entries + 3,
                                  8 * BLOCKS_AT_ONCE, &got);
  if (status != DEVICE_SUCCESS) return failed("MODEL_EXECUTE", status);
  entries[0] = wanted->cpu;
  entries[1] = wanted->thread;
  entries[2] = got / 8;
  return fwrite(entries, 8, 3 + got / 8, play->log) != 3 + got / 8 ? failed("the log", -1) : 0;
}

static int do_run(struct play* play, const char* line) {
  struct model_execute wanted = {0};
  uint32_t tid, pid, blocks;
  int result = 0;
  if (sscanf(line, "%u %u %u %u %u", &wanted.cpu, &wanted.thread, &tid, &pid, &blocks) != 5) return 2;
  if (wanted.cpu >= MODEL_CPUS) return 2;
  wanted.cr3 = (uint64_t)process(pid) << 16; /* as the model has it */
  uint32_t before = play->running[wanted.cpu];
  if (before != tid) result = add_event(play, (struct event){EVENT_SWITCH, wanted.cpu, before, tid, 0, 0, 0});
  play->running[wanted.cpu] = tid;
  while (blocks != 0 && result == 0) {
    wanted.blocks = blocks < BLOCKS_AT_ONCE ? blocks : BLOCKS_AT_ONCE;
    blocks -= wanted.blocks;
    result = execute(play, &wanted);
  }
  return result;
}

static int do_unload(struct play* play, const char* line) {
  struct event event = {.kind = EVENT_UNLOAD};
  if (sscanf(line, "%u %llx %llx", &event.first, &event.address, &event.bytes) != 3) return 2;
  event.first = process(event.first);
  return add_event(play, event);
}

static int do_loss(struct play* play, const char* line) {
  struct event event = {.kind = EVENT_LOSS};
  return sscanf(line, "%u", &event.first) != 1 ? 2 : add_event(play, event);
}

static int do_cut(struct play* play, const char* line) {
  struct event event = {.kind = EVENT_CUT};
  return sscanf(line, "%u", &event.cpu) != 1 ? 2 : add_event(play, event);
}

static int do_close(struct play* play, const char* line) {
  (void)line;
  device_close(play->device);
  play->device = device_open();
  return play->device == NULL ? failed("the device", -1) : 0;
}

static int path_in(const struct play* play, const char* line, char path[MOST_LINE]) {
  char name[128];
  if (sscanf(line, "%127s", name) != 1) return 2;
  snprintf(path, MOST_LINE, "%s/%s", play->folder, name);
  return 0;
}

/* The files have the instructions that were executed before. */
static int do_mark(struct play* play, const char* line) {
  char path[MOST_LINE];
  char number[16];
  if (path_in(play, line, path) != 0 || fflush(play->log) != 0) return 2;
  return write_file(path, number, (size_t)snprintf(number, sizeof(number), "%lu\n", GetCurrentProcessId()));
}

static int do_wait(struct play* play, const char* line) {
  char path[MOST_LINE];
  if (path_in(play, line, path) != 0) return 2;
  while (GetFileAttributesA(path) == INVALID_FILE_ATTRIBUTES) Sleep(20);
  return 0;
}

static int do_traced(struct play* play, const char* line) {
  uint32_t wanted, count;
  if (sscanf(line, "%u", &wanted) != 1) return 2;
  do {
    count = 0;
    for (uint32_t cpu = 0; cpu < MODEL_CPUS; cpu++) {
      struct model_registers registers;
      int32_t status = device_request(play->device, MODEL_REGISTERS, &cpu, sizeof(cpu), &registers,
                                      sizeof(registers), NULL);
      if (status != DEVICE_SUCCESS) return failed("MODEL_REGISTERS", status);
      count += registers.ctl & 1; /* TraceEn */
    }
    if (count != wanted) Sleep(20);
  } while (count != wanted);
  return 0;
}

static const struct {
  const char* name;
  int (*function)(struct play* play, const char* line);
} commands[] = {
    {"image", do_image},   {"process", do_process}, {"thread", do_thread}, {"run", do_run},
    {"unload", do_unload}, {"loss", do_loss},       {"cut", do_cut},       {"close", do_close},
    {"mark", do_mark},     {"wait", do_wait},       {"traced", do_traced},
};

static int do_line(struct play* play, const char* line) {
  for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++) {
    size_t length = strlen(commands[i].name);
    if (strncmp(line, commands[i].name, length) != 0) continue;
    int result = commands[i].function(play, line + length);
    return result == 2 ? failed(line, 2) : result;
  }
  return failed(line, 2);
}

static FILE* open_in(const char* folder, const char* name, const char* mode) {
  char path[MOST_LINE];
  snprintf(path, sizeof(path), "%s/%s", folder, name);
  return fopen(path, mode);
}

static int play(void** device, const char* folder) {
  struct play play = {
      folder, *device, open_in(folder, "log.u64", "wb"), open_in(folder, "events", "ab"), {0}};
  FILE* script = open_in(folder, "script", "r");
  char line[MOST_LINE];
  if (play.log == NULL || play.events == NULL || script == NULL) return failed(folder, -1);
  int result = 0;
  while (result == 0 && fgets(line, sizeof(line), script) != NULL) result = do_line(&play, line);
  fclose(script);
  *device = play.device;
  return fclose(play.log) != 0 || fclose(play.events) != 0 ? failed(folder, -1) : result;
}

static int hold(const char* path) {
  int32_t status = driver_load();
  if (status != 0) return failed("load", status);
  int result = write_file(path, "\n", 1);
  while (GetFileAttributesA(path) != INVALID_FILE_ATTRIBUTES) Sleep(100);
  status = driver_unload();
  return status != 0 ? failed("unload", status) : result;
}

int main(int argc, char** argv) {
  const char* verb = argc > 1 ? argv[1] : "";
  if (strcmp(verb, "hold") == 0 && argc == 3) return hold(argv[2]);
  void* device = device_open();
  if (device == NULL) return failed("the device", -1);
  int result = 2;
  if (strcmp(verb, "code") == 0 && argc == 4) result = write_code(device, (uint32_t)atoi(argv[2]), argv[3]);
  if (strcmp(verb, "play") == 0 && argc == 3) result = play(&device, argv[2]);
  return result;
}
