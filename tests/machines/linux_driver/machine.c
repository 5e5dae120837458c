// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include "machine.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/klog.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "check.h"

#define SYSLOG_ACTION_READ_ALL 3

int load_module(const char* path) { return load_module_with(path, ""); }

int load_module_with(const char* path, const char* parameters) {
  int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0) return errno;
  int error = syscall(SYS_finit_module, file, parameters, 0) ? errno : 0;
  close(file);
  return error;
}

int unload_module(void) { return syscall(SYS_delete_module, "ptkit", O_NONBLOCK) ? errno : 0; }

void write_file(const char* path, const char* text) {
  int file = open(path, O_WRONLY | O_CLOEXEC);
  CHECK(file >= 0);
  CHECK_EQUAL(write(file, text, strlen(text)), strlen(text));
  close(file);
}

void set_parameter(const char* name, int value) {
  char path[128];
  char text[32];
  snprintf(path, sizeof(path), "/sys/module/ptkit/parameters/%s", name);
  snprintf(text, sizeof(text), "%d", value);
  write_file(path, text);
}

void set_online(int cpu, bool online) {
  char path[128];
  snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/online", cpu);
  write_file(path, online ? "1" : "0");
}

long read_number(const char* path, const char* name) {
  static char text[65536];
  FILE* file = fopen(path, "r");
  if (file == NULL) return -1;
  size_t size = fread(text, 1, sizeof(text) - 1, file);
  fclose(file);
  text[size] = '\0';
  const char* found = strstr(text, name);
  return found == NULL ? -1 : strtol(found + strlen(name), NULL, 10);
}

bool log_has(const char* wanted) {
  static char text[1 << 20];
  int size = klogctl(SYSLOG_ACTION_READ_ALL, text, sizeof(text) - 1);
  text[size < 0 ? 0 : size] = '\0';
  return strstr(text, wanted) != NULL;
}

uint64_t module_symbol(const char* name) {
  char line[512];
  char found[256];
  unsigned long long address = 0;
  FILE* file = fopen("/proc/kallsyms", "r");
  if (file == NULL) return 0;
  while (fgets(line, sizeof(line), file) != NULL) {
    if (sscanf(line, "%llx %*c %255s", &address, found) == 2 && strcmp(found, name) == 0) break;
    address = 0;
  }
  fclose(file);
  return address;
}

void become_user(int capability) {
  struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  struct __user_cap_data_struct sets[2] = {{0}};
  prctl(PR_SET_KEEPCAPS, 1);
  if (setresuid(1000, 1000, 1000) != 0) _exit(255);
  if (capability >= 0)
    sets[capability / 32].permitted = sets[capability / 32].effective = 1U << capability % 32;
  if (syscall(SYS_capset, &header, sets) != 0) _exit(254);
}

int open_device(void) { return open(PTKIT_DEVICE, O_RDWR | O_CLOEXEC); }

struct ptkit_config simple_config(uint32_t cpu) {
  struct ptkit_config config;
  memset(&config, 0, sizeof(config));
  config.target = PTKIT_TARGET_CPU;
  config.cpu = cpu;
  config.buffer_bytes = 65536;
  config.flags = PTKIT_TRACE_USER | PTKIT_TRACE_KERNEL | PTKIT_TRACE_BRANCHES;
  return config;
}

void expect_refused(struct ptkit_config config, int error, size_t field) {
  int session = open_device();
  CHECK_FAILS(ioctl(session, PTKIT_CONFIGURE, &config), error);
  CHECK_EQUAL(config.refused, field);
  close(session);
}

int open_session(struct ptkit_config config) {
  int session = open_device();
  CHECK(session >= 0);
  CHECK_EQUAL(ioctl(session, PTKIT_CONFIGURE, &config), 0);
  return session;
}

struct ptkit_status status_of(int session, uint32_t cpu) {
  struct ptkit_status status;
  memset(&status, 0, sizeof(status));
  status.cpu = cpu;
  CHECK_EQUAL(ioctl(session, PTKIT_STATUS, &status), 0);
  return status;
}

const uint8_t* map_buffer(int session, uint32_t cpu, uint64_t* bytes) {
  struct ptkit_buffer buffer;
  memset(&buffer, 0, sizeof(buffer));
  buffer.cpu = cpu;
  CHECK_EQUAL(ioctl(session, PTKIT_BUFFER, &buffer), 0);
  void* mapped = mmap(NULL, buffer.data_bytes, PROT_READ, MAP_SHARED, session, (off_t)buffer.data_offset);
  CHECK(mapped != MAP_FAILED);
  *bytes = buffer.data_bytes;
  return mapped == MAP_FAILED ? NULL : mapped;
}

bool is_stretch(const uint8_t* bytes, uint64_t count) {
  for (uint64_t i = 1; i < count; i++)
    if (bytes[i] != (bytes[i - 1] == 251 ? 1 : bytes[i - 1] + 1)) return false;
  return count == 0 || bytes[0] != 0;
}

struct ptkit_query query_with(const char* parameters) {
  struct ptkit_query query = {0};
  CHECK_EQUAL(unload_module(), 0);
  CHECK_EQUAL(load_module_with(MODEL_MODULE, parameters), 0);
  int session = open_device();
  CHECK_EQUAL(ioctl(session, PTKIT_QUERY, &query), 0);
  close(session);
  return query;
}

uint64_t features_with(const char* parameters) { return query_with(parameters).features; }
