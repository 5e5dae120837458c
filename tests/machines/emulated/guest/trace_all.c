// SPDX-License-Identifier: MIT
// Traces all processors at once with ptkit.ko: trace_all user|kernel|both PREFIX [offline]
// PREFIX.NUMBER gets a processor's trace. With `offline`, processor 1 goes away and comes back meanwhile.
#define _GNU_SOURCE
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "machine.h"

enum { CPUS = 2, BUFFER_BYTES = 8 << 20 };

int failures;

// A program on one processor, which anybody may run on meanwhile.
static pid_t begin_on(int cpu, char* const* program) {
  const pid_t child = fork();
  if (child != 0) return child;
  cpu_set_t chosen;
  CPU_ZERO(&chosen);
  CPU_SET(cpu, &chosen);
  if (sched_setaffinity(0, sizeof(chosen), &chosen) == 0) execvp(program[0], program);
  _exit(127);
}

static void end(pid_t child) {
  int status = -1;
  CHECK_EQUAL(waitpid(child, &status, 0), child);
  CHECK_EQUAL(status, 0);
}

static void run_on_all(void) {
  char* program[] = {"ls", "/proc", NULL};
  pid_t children[CPUS];
  for (int cpu = 0; cpu < CPUS; cpu++) children[cpu] = begin_on(cpu, program);
  for (int cpu = 0; cpu < CPUS; cpu++) end(children[cpu]);
}

static void run_with_one_away(int session) {
  char* program[] = {"ls", "/", NULL};
  set_online(1, false);
  CHECK(status_of(session, 1).flags & PTKIT_STATUS_OFFLINE);
  end(begin_on(0, program));
  set_online(1, true);
  CHECK(!(status_of(session, 1).flags & PTKIT_STATUS_OFFLINE));
  run_on_all();
}

static void save(int session, int cpu, const char* prefix) {
  char path[64];
  uint64_t bytes = 0;
  const uint8_t* const buffer = map_buffer(session, (uint32_t)cpu, &bytes);
  const struct ptkit_status status = status_of(session, (uint32_t)cpu);
  CHECK_EQUAL(status.error, 0);
  CHECK(!(status.flags & PTKIT_STATUS_FULL));
  snprintf(path, sizeof(path), "%s.%d", prefix, cpu);
  const int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  CHECK_EQUAL(write(file, buffer, status.position), status.position);
  close(file);
}

int main(int count, char** words) {
  if (count < 3) return 2;
  struct ptkit_config config = simple_config(0);
  config.target = PTKIT_TARGET_ALL;
  config.buffer_bytes = BUFFER_BYTES;
  config.flags |= PTKIT_TRACE_TSC;
  if (strcmp(words[1], "user") == 0) config.flags &= ~PTKIT_TRACE_KERNEL;
  if (strcmp(words[1], "kernel") == 0) config.flags &= ~PTKIT_TRACE_USER;
  const int session = open_session(config);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  run_on_all();
  if (count > 3) run_with_one_away(session);
  CHECK_EQUAL(ioctl(session, PTKIT_PAUSE), 0);
  for (int cpu = 0; cpu < CPUS; cpu++) save(session, cpu, words[2]);
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  return failures != 0;
}
