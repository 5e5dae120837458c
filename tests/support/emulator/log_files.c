/* A plugin for QEMU that keeps its log (-d exec,tid) apart: one file for each thread of each process and each program that it
   executes. Without it a forked child writes into its parent's file, and an exec'd QEMU cuts off the file of the same thread.

   QEMU_PLUGIN=file=THIS QEMU_LOG=...,tid QEMU_LOG_FILENAME=FOLDER/log.%d

   The files are named log.PID.TID.NANOSECONDS from the thread's first system call on. That of a forked child begins with the name
   of the file of the thread that forked. */
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
void qemu_plugin_register_vcpu_syscall_cb(qemu_plugin_id_t id,
                                          void (*call)(qemu_plugin_id_t, unsigned, int64_t, uint64_t, uint64_t,
                                                       uint64_t, uint64_t, uint64_t, uint64_t, uint64_t, uint64_t));
__attribute__((visibility("default"))) int qemu_plugin_version = 1;

enum { PATH = 4096, FILES = 4096 };
static __thread int log_file = -1;
static __thread char name[PATH];

static int thread_id(void) { return (int)syscall(SYS_gettid); }

static void new_name(char* to) {
  struct timespec now;
  char begin[PATH / 2];
  clock_gettime(CLOCK_MONOTONIC, &now);
  snprintf(begin, sizeof begin, getenv("QEMU_LOG_FILENAME"), getpid());
  snprintf(to, PATH, "%s.%d.%lld", begin, thread_id(), now.tv_sec * 1000000000LL + now.tv_nsec);
}

static void find_log(void) {
  char link[64];
  char target[PATH];
  char path[PATH];
  snprintf(path, sizeof path, getenv("QEMU_LOG_FILENAME"), thread_id());
  for (int fd = 0; fd < FILES && log_file < 0; ++fd) {
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    const ssize_t length = readlink(link, target, sizeof target - 1);
    if (length <= 0) continue;
    target[length] = 0;
    if (strcmp(target, path) == 0) log_file = fd;
  }
  new_name(name);
  if (log_file < 0 || rename(path, name) != 0) abort();
}

static void in_child(void) {
  char line[PATH + 64];
  const int size = snprintf(line, sizeof line, "log_files: forked by %s\n", strrchr(name, '/') + 1);
  new_name(name);
  const int file = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (file < 0 || write(file, line, (size_t)size) != size || dup3(file, log_file, O_CLOEXEC) < 0) abort();
  close(file);
}

static void on_syscall(qemu_plugin_id_t id, unsigned cpu, int64_t number, uint64_t a1, uint64_t a2, uint64_t a3,
                       uint64_t a4, uint64_t a5, uint64_t a6, uint64_t a7, uint64_t a8) {
  (void)id, (void)cpu, (void)number;
  (void)a1, (void)a2, (void)a3, (void)a4, (void)a5, (void)a6, (void)a7, (void)a8;
  if (log_file < 0) find_log();
}

__attribute__((visibility("default"))) int qemu_plugin_install(qemu_plugin_id_t id, const void* info, int argc,
                                                               char** argv) {
  (void)info, (void)argc, (void)argv;
  if (pthread_atfork(NULL, NULL, in_child) != 0) return 1;
  qemu_plugin_register_vcpu_syscall_cb(id, on_syscall);
  return 0;
}
