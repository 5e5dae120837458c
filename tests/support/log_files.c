/* A plugin for QEMU that keeps its log (-d exec) apart: one file for each process and each program that it executes.
   Without it a forked child writes into its parent's file, and an exec'd QEMU cuts off the file of the same process.

   QEMU_PLUGIN=file=THIS QEMU_LOG=...,plugin QEMU_LOG_FILENAME=FOLDER/log.%d

   The files are named log.PID.NANOSECONDS. Lines that begin with "log_files:" say which file a child goes on from,
   and which thread a virtual CPU is. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

typedef uint64_t qemu_plugin_id_t;
void qemu_plugin_outs(const char* text);
void qemu_plugin_register_vcpu_init_cb(qemu_plugin_id_t id, void (*call)(qemu_plugin_id_t, unsigned));
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id,
                                          void (*call)(qemu_plugin_id_t, unsigned, int64_t, uint64_t, uint64_t,
                                                       uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t));
__attribute__((visibility("default"))) int qemu_plugin_version = 1;

static int log_file = -1;
static char name[4096];     /* of the log file of this process */
static long long written;   /* bytes of it when the process was about to fork */
static __thread int named; /* the log knows the thread */

static void new_name(char* to, size_t size) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const char* const pattern = getenv("QEMU_LOG_FILENAME");
  char path[4096];
  snprintf(path, sizeof path, pattern, getpid());
  snprintf(to, size, "%s.%lld", path, now.tv_sec * 1000000000LL + now.tv_nsec);
}

static void find_log(void) {
  char open_file[64];
  char target[4096];
  char path[4096];
  snprintf(path, sizeof path, getenv("QEMU_LOG_FILENAME"), getpid());
  for (int fd = 0; fd < 1024 && log_file < 0; ++fd) {
    snprintf(open_file, sizeof open_file, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(open_file, target, sizeof target - 1);
    if (length <= 0) continue;
    target[length] = 0;
    if (strcmp(target, path) == 0) log_file = fd;
  }
  if (log_file < 0) abort();
  new_name(name, sizeof name);
  if (rename(path, name) != 0) abort();
}

static void before_fork(void) { written = lseek(log_file, 0, SEEK_CUR); }

static void in_child(void) {
  char path[4096];
  char line[8192];
  new_name(path, sizeof path);
  const int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0) abort();
  const int size = snprintf(line, sizeof line, "log_files: goes on from %lld of %s\n", written, name);
  if (write(file, line, (size_t)size) != size || dup3(file, log_file, O_CLOEXEC) < 0) abort();
  close(file);
  memcpy(name, path, sizeof name);
  named = 0;
}

static void on_init(qemu_plugin_id_t id, unsigned cpu) {
  char line[64];
  (void)id;
  snprintf(line, sizeof line, "log_files: cpu %u begins\n", cpu);
  qemu_plugin_outs(line);
}

static void on_syscall(qemu_plugin_id_t id, unsigned cpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                       uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
  char line[64];
  (void)id, (void)number, (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
  if (named) return;
  named = 1;
  snprintf(line, sizeof line, "log_files: cpu %u is %ld\n", cpu, syscall(SYS_gettid));
  qemu_plugin_outs(line);
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const void* info, int argc,
                                                               char** argv) {
  (void)info, (void)argc, (void)argv;
  find_log();
  if (pthread_atfork(before_fork, NULL, in_child) != 0) return 1;
  qemu_plugin_register_vcpu_init_cb(id, on_init);
  qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
  return 0;
}
