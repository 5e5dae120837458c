// SPDX-License-Identifier: MIT
/*
 * A program that is recorded: its instructions are the model's, on all of its processors.
 *
 *   hold FILE       loads the driver's test build, writes FILE, and unloads it when FILE is gone: Wine ends
 * its services with the last program code FILE       writes the code of the model's program for user code run
 * FOLDER PATH BLOCKS tells the driver that PATH (as the kernel names it) is mapped, executes so many blocks,
 *                   and writes FOLDER/log-CPU.u64, the log of each processor
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control.h"
#include "device.h"

#define BLOCKS_AT_ONCE 400
#define IMAGE_BASE 0x140000000ULL
#define IMAGE_BYTES 0x5000

static int failed(const char* what, int32_t status) {
  fprintf(stderr, "%s: 0x%x\n", what, (unsigned)status);
  return 1;
}

static int write_file(const char* path, const char* mode, const void* bytes, size_t count) {
  FILE* file = fopen(path, mode);
  if (file == NULL) return failed(path, -1);
  size_t written = fwrite(bytes, 1, count, file);
  return fclose(file) != 0 || written != count ? failed(path, -1) : 0;
}

static int write_code(void* device, const char* path) {
  static uint8_t answer[65536];
  uint32_t kernel = 0, got = 0;
  int32_t status =
      device_request(device, MODEL_PROGRAM, &kernel, sizeof(kernel), answer, sizeof(answer), &got);
  if (status != DEVICE_SUCCESS || got <= sizeof(struct model_program)) return failed("MODEL_PROGRAM", status);
  return write_file(path, "wb", answer + sizeof(struct model_program), got - sizeof(struct model_program));
}

static int tell_image(void* device, const char* path) {
  struct model_tell tell = {.event = MODEL_TELL_IMAGE, .begins = 1, .pid = GetCurrentProcessId()};
  tell.address = IMAGE_BASE;
  tell.bytes = IMAGE_BYTES;
  for (size_t i = 0; path[i] != 0 && i < 128; i++) tell.path[i] = (uint8_t)path[i];
  tell.path_bytes = (uint32_t)(2 * strlen(path));
  int32_t status = device_request(device, MODEL_TELL, &tell, sizeof(tell), NULL, 0, NULL);
  return status != DEVICE_SUCCESS ? failed("MODEL_TELL", status) : 0;
}

/* Blocks of a thread of the process with these page tables. */
static int execute(void* device, FILE* log, uint32_t cpu, uint32_t thread, uint64_t cr3, uint32_t blocks) {
  static uint64_t entries[3 + BLOCKS_AT_ONCE];
  struct model_execute wanted = {cpu, thread, blocks, 0, cr3};
  uint32_t got = 0;
  int32_t status =
      device_request(device, MODEL_EXECUTE, &wanted, sizeof(wanted), entries + 3, 8 * BLOCKS_AT_ONCE, &got);
  if (status != DEVICE_SUCCESS) return failed("MODEL_EXECUTE", status);
  entries[0] = cpu;
  entries[1] = thread;
  entries[2] = got / 8;
  return fwrite(entries, 8, 3 + got / 8, log) != 3 + got / 8 ? failed("the log", -1) : 0;
}

/* The thread goes from one processor to the next. Another process runs where it was. */
static int run(void* device, const char* folder, uint32_t blocks) {
  uint64_t cr3 = (uint64_t)GetCurrentProcessId() << 16; /* as the model has it */
  char path[260];
  int result = 0;
  snprintf(path, sizeof(path), "%s/log.u64", folder);
  FILE* log = fopen(path, "wb");
  if (log == NULL) return failed(path, -1);
  for (uint32_t done = 0, cpu = 0; done < blocks && result == 0; cpu = (cpu + 1) % MODEL_CPUS) {
    uint32_t now = blocks - done < BLOCKS_AT_ONCE ? blocks - done : BLOCKS_AT_ONCE;
    result = execute(device, log, cpu, 0, cr3, now) || execute(device, log, cpu, 1, cr3 + 0x10000, 3);
    done += now;
  }
  return fclose(log) != 0 ? failed(path, -1) : result;
}

static int wait_for_end(const char* folder) {
  char path[260];
  snprintf(path, sizeof(path), "%s/done", folder);
  if (write_file(path, "wb", "", 0) != 0) return 1;
  Sleep(INFINITE);
  return 0;
}

static int hold(const char* path) {
  int32_t status = driver_load();
  if (status != 0) return failed("load", status);
  int result = write_file(path, "wb", "", 0);
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
  if (strcmp(verb, "code") == 0 && argc == 3) result = write_code(device, argv[2]);
  bool waits = strcmp(verb, "wait") == 0;
  if ((waits || strcmp(verb, "run") == 0) && argc == 5)
    result = tell_image(device, argv[3]) || run(device, argv[2], (uint32_t)atoi(argv[4]));
  if (waits && result == 0) result = wait_for_end(argv[2]);
  device_close(device);
  return result;
}
