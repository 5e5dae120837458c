// SPDX-License-Identifier: MIT
/*
 * Processes and threads that are followed. The model writes so many bytes for each stretch of tracing,
 * and the kernel counts how often a thread was switched away from: both must agree.
 */
#define _GNU_SOURCE
#include "following.h"

#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"
#include "machine.h"

#define STRETCH 100 /* bytes */
#define TURNS 40

/* Messages between a worker and the test. */
struct shared {
  volatile pid_t thread; /* the worker's */
  volatile int turns;    /* done */
  volatile int command;
};

enum { SLEEP, SPIN, STOP, EXEC, END };

static struct shared* shared;

static void pin(unsigned cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  CHECK_EQUAL(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
}

static void obey(void) {
  static char* const arguments[] = {"busybox", "sleep", "1000", NULL};
  for (;;) {
    switch (shared->command) {
      case SLEEP: /* on one processor and the other */
        for (int i = 0; i < TURNS; i++) {
          pin((unsigned)i % 2);
          usleep(200);
        }
        shared->turns++;
        raise(SIGSTOP);
        break;
      case SPIN: /* on the second one */
        pin(1);
        shared->turns++;
        while (shared->command == SPIN) continue;
        break;
      case STOP:
        shared->turns++;
        raise(SIGSTOP);
        break;
      case EXEC:
        shared->turns++;
        execv("/bin/busybox", arguments);
        _exit(1);
      default:
        _exit(0);
    }
  }
}

static void* work(void* unused) {
  shared->thread = (pid_t)syscall(SYS_gettid);
  obey();
  return unused;
}

static void* be_in_the_way(void* cpu) {
  pin(*(unsigned*)cpu);
  for (;;) usleep(2000);
  return NULL;
}

/* A process that is stopped; with threads, its worker is not the first one. */
static pid_t begin(bool threads) {
  shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  CHECK(shared != MAP_FAILED);
  shared->command = STOP;
  pid_t child = fork();
  if (child == 0) {
    static unsigned cpus[2] = {0, 1};
    pthread_t thread;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (unsigned i = 0; threads && i < 2; i++) pthread_create(&thread, NULL, be_in_the_way, &cpus[i]);
    if (threads) pthread_create(&thread, NULL, work, NULL);
    if (!threads) work(NULL);
    for (;;) pause();
  }
  CHECK_EQUAL(waitpid(child, NULL, WUNTRACED), child);
  usleep(20000); /* until it is really away */
  return child;
}

static void end(pid_t child) {
  kill(child, SIGKILL);
  CHECK_EQUAL(waitpid(child, NULL, 0), child);
  munmap(shared, 4096);
}

/* Until it has stopped again. */
static void order(pid_t child, int command) {
  shared->command = command;
  CHECK_EQUAL(kill(child, SIGCONT), 0);
  if (command == SLEEP || command == STOP) {
    CHECK_EQUAL(waitpid(child, NULL, WUNTRACED), child);
    usleep(20000);
    return;
  }
  int turns = shared->turns;
  for (int i = 0; i < 5000 && (shared->turns == turns || command == EXEC); i++) {
    usleep(1000);
    if (command == EXEC && i > 200) return;
  }
}

/* How often a thread was switched away from. */
static long switches(pid_t process, pid_t thread) {
  char path[64];
  snprintf(path, sizeof(path), "/proc/%d/task/%d/status", process, thread);
  return read_number(path, "\nvoluntary_ctxt_switches:") + read_number(path, "\nnonvoluntary_ctxt_switches:");
}

static struct ptkit_config process_config(pid_t process) {
  struct ptkit_config config = simple_config(0);
  config.buffer_bytes = 1 << 20; /* for many switches */
  config.target = PTKIT_TARGET_ALL;
  config.process = process;
  return config;
}

static struct ptkit_config task_config(pid_t task) {
  struct ptkit_config config = simple_config(0);
  config.buffer_bytes = 1 << 20; /* for many switches */
  config.target = PTKIT_TARGET_TASK;
  config.task = task;
  return config;
}

static long stretches(int session, uint32_t cpus) {
  uint64_t bytes = 0;
  for (uint32_t cpu = 0; cpu < cpus; cpu++) bytes += status_of(session, cpu).position;
  CHECK_EQUAL(bytes % STRETCH, 0);
  return (long)(bytes / STRETCH);
}

/* Now and then somebody else runs there, but not for long. */
static bool runs(int session, uint32_t cpu) {
  for (int i = 0; i < 200; i++) {
    if (status_of(session, cpu).flags == (PTKIT_STATUS_STARTED | PTKIT_STATUS_RUNNING)) return true;
    usleep(500);
  }
  return false;
}

static void prepare(void) {
  pin(0);
  set_parameter("model_bytes", STRETCH);
}

static void finish(void) { set_parameter("model_bytes", 5000); }

void traces_one_process(void) {
  struct ptkit_config config = process_config(getpid());
  config.flags &= ~PTKIT_TRACE_KERNEL;
  int session = open_session(config);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK(status_of(session, 0).flags & PTKIT_STATUS_RUNNING); /* the processor looks who runs */
  CHECK(status_of(session, 1).flags & PTKIT_STATUS_RUNNING);
  close(session);
  config.process = 2; /* a kernel thread: no address space */
  session = open_device();
  CHECK_FAILS(ioctl(session, PTKIT_CONFIGURE, &config), ESRCH);
  config.process = 1 << 30;
  CHECK_FAILS(ioctl(session, PTKIT_CONFIGURE, &config), ESRCH);
  close(session);
}

void traces_a_process_where_it_runs(void) {
  prepare();
  pid_t child = begin(false);
  int session = open_session(process_config(child));
  for (int round = 0; round < 2; round++) {
    long before = switches(child, child);
    CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
    CHECK_EQUAL(status_of(session, 0).flags, PTKIT_STATUS_STARTED);
    CHECK_EQUAL(stretches(session, 2), 0);
    order(child, SLEEP);
    CHECK_EQUAL(stretches(session, 2), switches(child, child) - before);
    CHECK(stretches(session, 2) > TURNS);
    CHECK(status_of(session, 0).position > 0 && status_of(session, 1).position > 0);
    order(child, SPIN);
    CHECK_EQUAL(status_of(session, 0).flags, PTKIT_STATUS_STARTED);
    CHECK(runs(session, 1));
    CHECK_EQUAL(ioctl(session, PTKIT_PAUSE), 0); /* in the middle of it */
    CHECK_EQUAL(status_of(session, 1).flags, PTKIT_STATUS_STARTED);
    CHECK_EQUAL(ioctl(session, PTKIT_RESUME), 0);
    CHECK(runs(session, 1));
    CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
    CHECK_EQUAL(ioctl(session, PTKIT_START), 0); /* while it runs there */
    CHECK(runs(session, 1));
    CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
    order(child, STOP);
  }
  close(session);
  end(child);
  finish();
}

void traces_one_of_its_threads(void) {
  uint64_t bytes = 0;
  prepare();
  set_parameter("model_shared", 1);
  pid_t child = begin(true);
  struct ptkit_config config = task_config(shared->thread);
  config.wake_up_bytes = 4096;
  int session = open_session(config);
  const uint8_t* data = map_buffer(session, 0, &bytes);
  CHECK_EQUAL(bytes, config.buffer_bytes);
  for (int round = 0; round < 2; round++) {
    long before = switches(child, shared->thread);
    CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
    order(child, SLEEP);
    long made = switches(child, shared->thread) - before;
    CHECK(made > TURNS);
    CHECK_EQUAL(status_of(session, 0).head, made * STRETCH);
    CHECK(is_stretch(data, (uint64_t)made * STRETCH));
    CHECK_EQUAL(ioctl(session, PTKIT_PAUSE), 0);
    order(child, SLEEP);
    CHECK_EQUAL(status_of(session, 0).head, made * STRETCH);
    CHECK_EQUAL(ioctl(session, PTKIT_RESUME), 0);
    order(child, SPIN);
    CHECK(runs(session, 0));
    CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
    CHECK_EQUAL(status_of(session, 0).flags, 0);
    order(child, STOP);
  }
  munmap((void*)data, bytes);
  close(session);
  end(child);
  set_parameter("model_shared", 0);
  finish();
}

/* Writes of TraceEn take 1 to 10 us: two for each context switch. */
void traces_a_thread_with_slow_registers(void) {
  set_parameter("model_slow_us", 10);
  traces_one_of_its_threads();
  set_parameter("model_slow_us", 0);
}

void traces_itself(void) {
  prepare();
  int session = open_session(task_config((pid_t)syscall(SYS_gettid)));
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK(runs(session, 0));
  pin(1);
  CHECK(runs(session, 0));
  struct ptkit_snapshot snapshot = {.address = (uintptr_t)malloc(65536), .bytes = 65536};
  CHECK_EQUAL(ioctl(session, PTKIT_SNAPSHOT, &snapshot), 0);
  CHECK(snapshot.bytes >= 2 * STRETCH);
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  free((void*)(uintptr_t)snapshot.address);
  close(session);
  finish();
}

static unsigned long cr3_match(int cpu) {
  const char* path = "/sys/module/ptkit/parameters/model_cr3_match";
  char text[64] = "";
  int file = open(path, O_RDONLY);
  ssize_t size = read(file, text, sizeof(text) - 1);
  close(file);
  const char* second = size > 0 ? strchr(text, ',') : NULL;
  if (second == NULL) return 0;
  return strtoul(cpu ? second + 1 : text, NULL, 10);
}

void renews_page_tables_after_exec(void) {
  static const uint64_t levels[] = {PTKIT_TRACE_USER, PTKIT_TRACE_KERNEL};
  for (int i = 0; i < 2; i++) {
    prepare();
    pid_t child = begin(false);
    struct ptkit_config config = process_config(child);
    config.flags = levels[i] | PTKIT_TRACE_BRANCHES;
    int session = open_session(config);
    CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
    unsigned long before = cr3_match(0);
    CHECK(before != 0 && cr3_match(1) == before);
    order(child, EXEC);
    CHECK(cr3_match(0) != 0 && cr3_match(0) != before);
    CHECK_EQUAL(cr3_match(1), cr3_match(0));
    CHECK_EQUAL(stretches(session, 2), 2); /* up to exec() on both */
    unsigned long after = cr3_match(0);
    CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
    CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
    CHECK_EQUAL(cr3_match(0), after); /* not those that it was configured with */
    close(session);
    end(child);
    finish();
  }
}

/* Children of a process that stays on the first processor, on the second one. */
static void fork_elsewhere(int times) {
  for (int i = 0; i < times; i++) {
    pid_t child = fork();
    if (child == 0) {
      pin(1);
      pid_t grandchild = fork();
      if (grandchild == 0) {
        usleep(100);
        _exit(0);
      }
      waitpid(grandchild, NULL, 0);
      _exit(0);
    }
    waitpid(child, NULL, 0);
  }
}

static pid_t begin_parent(int times) {
  pid_t parent = fork();
  if (parent == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
      raise(SIGSTOP);
      fork_elsewhere(times);
    }
  }
  CHECK_EQUAL(waitpid(parent, NULL, WUNTRACED), parent);
  usleep(20000);
  return parent;
}

static void run_parent(pid_t parent) {
  CHECK_EQUAL(kill(parent, SIGCONT), 0);
  CHECK_EQUAL(waitpid(parent, NULL, WUNTRACED), parent);
  usleep(20000);
}

void traces_children(void) {
  prepare();
  pid_t parent = begin_parent(20);
  struct ptkit_config config = process_config(parent);
  int session = open_session(config);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  run_parent(parent);
  CHECK(status_of(session, 0).position > 0);
  CHECK_EQUAL(status_of(session, 1).position, 0);
  close(session);
  config.flags |= PTKIT_TRACE_CHILDREN;
  session = open_session(config);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  fork_elsewhere(20); /* not of those */
  CHECK_EQUAL(status_of(session, 1).position, 0);
  run_parent(parent);
  /* One child after the other; each one and its own may follow on each other. */
  CHECK(status_of(session, 1).position >= 20 * STRETCH);
  CHECK_EQUAL(status_of(session, 0).error, 0);
  close(session);
  kill(parent, SIGKILL);
  waitpid(parent, NULL, 0);
  finish();
}

/* Those that have ended are not kept: each one would be some 10 KiB. */
void forgets_children(void) {
  prepare();
  pid_t parent = begin_parent(600);
  struct ptkit_config config = process_config(parent);
  config.flags |= PTKIT_TRACE_CHILDREN;
  int session = open_session(config);
  run_parent(parent);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  long before = read_number("/proc/meminfo", "MemFree:");
  run_parent(parent);
  usleep(100000); /* what RCU puts off */
  CHECK(read_number("/proc/meminfo", "MemFree:") > before - 8192);
  close(session);
  kill(parent, SIGKILL);
  waitpid(parent, NULL, 0);
  finish();
}

static void write_number(const char* path, long number) {
  char text[32];
  int size = snprintf(text, sizeof(text), "%ld", number);
  int file = open(path, O_WRONLY | O_CLOEXEC);
  CHECK_EQUAL(write(file, text, (size_t)size), size);
  close(file);
}

void knows_processes_by_more_than_numbers(void) {
  prepare();
  pid_t child = begin(false);
  int process = open_session(process_config(child));
  int task = open_session(task_config(child));
  CHECK_EQUAL(ioctl(process, PTKIT_START), 0);
  CHECK_EQUAL(ioctl(process, PTKIT_STOP), 0);
  CHECK_EQUAL(ioctl(process, PTKIT_START), 0);
  end(child);
  write_number("/proc/sys/kernel/ns_last_pid", child - 1);
  pid_t other = begin(false);
  CHECK_EQUAL(other, child); /* the number; it is another process */
  long before = stretches(process, 2);
  order(other, SLEEP);
  CHECK_EQUAL(stretches(process, 2), before);
  CHECK_EQUAL(ioctl(process, PTKIT_STOP), 0);
  CHECK_FAILS(ioctl(process, PTKIT_START), ESRCH);
  CHECK_FAILS(ioctl(task, PTKIT_START), ESRCH);
  close(process);
  close(task);
  end(other);
  finish();
}

void comes_to_a_processor_that_is_taken(void) {
  prepare();
  pid_t child = begin(false);
  int task = open_session(task_config(child));
  int second = open_session(simple_config(1));
  struct pollfd poll_it = {.fd = task, .events = POLLIN};
  CHECK_EQUAL(ioctl(second, PTKIT_START), 0);
  CHECK_EQUAL(ioctl(task, PTKIT_START), 0);
  CHECK_EQUAL(status_of(task, 0).error, 0);
  order(child, SPIN);
  CHECK_EQUAL(status_of(task, 0).error, -EBUSY);
  CHECK_EQUAL(status_of(task, 0).flags, PTKIT_STATUS_STARTED);
  CHECK(runs(second, 1));
  CHECK_EQUAL(poll(&poll_it, 1, 0), 1);
  CHECK(poll_it.revents & POLLERR);
  CHECK_FAILS(ioctl(task, PTKIT_RESUME), EBUSY);
  CHECK_EQUAL(ioctl(second, PTKIT_STOP), 0);
  CHECK_EQUAL(status_of(task, 0).error, -EBUSY); /* until somebody has seen it */
  CHECK_EQUAL(ioctl(task, PTKIT_RESUME), 0);
  CHECK(runs(task, 0));
  CHECK_FAILS(ioctl(second, PTKIT_START), EBUSY);
  order(child, STOP);
  CHECK_EQUAL(ioctl(second, PTKIT_START), 0); /* the task is away */
  close(second);
  close(task);
  end(child);
  finish();
}

void keeps_errors_of_switches(void) {
  prepare();
  pid_t child = begin(false);
  int session = open_session(process_config(child));
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  set_parameter("model_taken", 1); /* by somebody that we do not know of */
  order(child, SPIN);
  CHECK_EQUAL(status_of(session, 1).error, -EBUSY);
  set_parameter("model_taken", -1);
  order(child, SLEEP);
  CHECK_EQUAL(status_of(session, 1).error, -EBUSY);
  CHECK_EQUAL(status_of(session, 0).error, 0);
  CHECK_EQUAL(ioctl(session, PTKIT_RESUME), 0);
  order(child, SPIN);
  CHECK(runs(session, 1));
  set_parameter("model_faulty", 1); /* it cannot be stopped */
  order(child, SLEEP);
  CHECK_EQUAL(status_of(session, 1).error, -EIO);
  CHECK(status_of(session, 1).flags & PTKIT_STATUS_RUNNING);
  CHECK_FAILS(ioctl(session, PTKIT_STOP), EIO);
  set_parameter("model_faulty", -1);
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  close(session);
  end(child);
  finish();
}

void goes_on_elsewhere_when_a_processor_goes(void) {
  prepare();
  set_parameter("model_shared", 1);
  pid_t child = begin(false);
  uint64_t bytes = 0;
  int session = open_session(task_config(child));
  const uint8_t* data = map_buffer(session, 0, &bytes);
  long before = switches(child, child);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  order(child, SPIN);
  set_online(1, false);
  usleep(20000); /* they share the one that is left, and now we run */
  CHECK_EQUAL(status_of(session, 0).flags, PTKIT_STATUS_STARTED);
  set_online(1, true);
  order(child, STOP);
  CHECK_EQUAL(stretches(session, 1), switches(child, child) - before);
  CHECK(stretches(session, 1) >= 3);
  CHECK(is_stretch(data, status_of(session, 0).position));
  munmap((void*)data, bytes);
  close(session);
  end(child);
  set_parameter("model_shared", 0);
  finish();
}

void ends_while_it_is_traced(void) {
  prepare();
  for (int i = 0; i < 4; i++) {
    pid_t child = begin(i % 2);
    int session = open_session(i < 2 ? process_config(child) : task_config(shared->thread));
    CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
    order(child, SPIN);
    CHECK(runs(session, i < 2));
    end(child);
    usleep(20000);
    CHECK_EQUAL(status_of(session, i < 2).flags, PTKIT_STATUS_STARTED);
    CHECK(status_of(session, i < 2).position >= STRETCH);
    CHECK_EQUAL(unload_module(), EWOULDBLOCK);
    close(session);
  }
  finish();
}
