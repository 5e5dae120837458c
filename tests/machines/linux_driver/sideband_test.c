// SPDX-License-Identifier: MIT
/* Sideband records of the driver: threads, their page tables, modules. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "check.h"
#include "machine.h"
#include "records.h"

#define SHELL "/bin/busybox"

static struct ptkit_config sideband_config(uint64_t bytes) {
  struct ptkit_config config = simple_config(0);
  config.target = PTKIT_TARGET_ALL;
  config.sideband_bytes = bytes;
  return config;
}

/* A child that ends as another program, with status 7. */
static void child_works(void) {
  execl(SHELL, "sh", "-c", "exit 7", NULL);
  _exit(99);
}

static pid_t run_child(void) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) child_works();
  waitpid(child, &status, 0);
  CHECK_EQUAL(WEXITSTATUS(status), 7);
  return child;
}

static size_t find_only(const struct records* records, uint16_t type, int32_t tid) {
  size_t index = find_record(records, 0, type, tid);
  CHECK(index < records->count);
  CHECK_EQUAL(find_record(records, index + 1, type, tid), records->count);
  return index < records->count ? index : 0;
}

static uint64_t kernel_cr3(const struct records* records, size_t index) {
  return records->all[index].space.kernel_cr3;
}

/* The life of run_child(), in its order. */
static void check_life(const struct records* records, pid_t child) {
  size_t fork = find_only(records, PTKIT_RECORD_FORK, child);
  size_t exec = find_only(records, PTKIT_RECORD_EXEC, child);
  size_t end = find_only(records, PTKIT_RECORD_EXIT, child);
  size_t runs = find_record(records, fork, PTKIT_RECORD_SWITCH, child);
  CHECK(fork < runs && runs < exec && exec < end);
  CHECK_EQUAL(records->all[fork].head.pid, child);
  CHECK_EQUAL(records->all[fork].fork.parent_pid, getpid());
  CHECK_EQUAL(records->all[fork].fork.parent_tid, getpid());
  CHECK_EQUAL(records->all[end].exit.status, 7 << 8);
  uint64_t before = kernel_cr3(records, runs);
  uint64_t after = kernel_cr3(records, exec);
  CHECK_EQUAL(kernel_cr3(records, fork), before);
  CHECK(before != 0 && before % 4096 == 0 && after != 0 && before != after);
  size_t last = find_record(records, exec, PTKIT_RECORD_SWITCH, child);
  /* Its memory is gone a moment before its end is told. */
  if (last < end) CHECK(kernel_cr3(records, last) == after || kernel_cr3(records, last) == 0);
}

void tells_what_threads_do(void) {
  int session = open_session(sideband_config(1 << 20));
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  pid_t first = run_child();
  CHECK_EQUAL(ioctl(session, PTKIT_PAUSE), 0); /* the sideband goes on */
  pid_t second = run_child();
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  uint64_t ended = status_of(session, 0).sideband_head;
  pid_t untold = run_child();
  CHECK_EQUAL(status_of(session, 0).sideband_head, ended);
  CHECK_EQUAL(status_of(session, 0).sideband_lost + status_of(session, 1).sideband_lost, 0);
  struct records records = read_rings(session);
  CHECK(records.count > 2 && records.all[0].head.type == PTKIT_RECORD_SWITCH);
  check_life(&records, first);
  check_life(&records, second);
  CHECK_EQUAL(find_record(&records, 0, PTKIT_RECORD_FORK, untold), records.count);
  free_records(&records);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0); /* empty again */
  CHECK(status_of(session, 0).sideband_head < ended);
  CHECK_EQUAL(status_of(session, 0).sideband_tail, 0);
  close(session);
}

/* Works when told so by a byte on its standard input. */
static pid_t begin_child(int pipe_ends[2]) {
  CHECK_EQUAL(pipe(pipe_ends), 0);
  pid_t child = fork();
  if (child == 0) {
    char byte;
    if (read(pipe_ends[0], &byte, 1) != 1) _exit(98);
    child_works();
  }
  return child;
}

void tells_of_one_process(void) {
  int pipe_ends[2];
  int status = 0;
  struct ptkit_config config = sideband_config(1 << 20);
  config.process = begin_child(pipe_ends);
  config.flags &= ~PTKIT_TRACE_KERNEL;
  int session = open_session(config);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_EQUAL(write(pipe_ends[1], "", 1), 1);
  waitpid(config.process, &status, 0);
  run_child();
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  struct records records = read_rings(session);
  int away = 0;
  for (size_t i = 0; i < records.count; i++) {
    const struct ptkit_record* head = &records.all[i].head;
    bool is_switch = head->type == PTKIT_RECORD_SWITCH;
    CHECK(head->pid == config.process || (is_switch && head->pid == -1 && head->tid == -1));
    away += head->pid == -1;
  }
  CHECK(away >= 2); /* it had to wait, and ended */
  size_t runs = find_record(&records, 0, PTKIT_RECORD_SWITCH, config.process);
  CHECK_EQUAL(find_only(&records, PTKIT_RECORD_SPACE, config.process), 0);
  CHECK(kernel_cr3(&records, 0) != 0 && kernel_cr3(&records, 0) == kernel_cr3(&records, runs));
  find_only(&records, PTKIT_RECORD_EXEC, config.process);
  find_only(&records, PTKIT_RECORD_EXIT, config.process);
  CHECK_EQUAL(find_record(&records, 0, PTKIT_RECORD_FORK, 0), records.count);
  free_records(&records);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  close(session);
}

/* Also in a ring that is one for all processors. */
void tells_of_one_thread(void) {
  int pipe_ends[2];
  int status = 0;
  struct records records = {NULL, 0};
  struct ptkit_config config = sideband_config(1 << 20);
  config.target = PTKIT_TARGET_TASK;
  config.task = begin_child(pipe_ends);
  int session = open_session(config);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_EQUAL(write(pipe_ends[1], "", 1), 1);
  waitpid(config.task, &status, 0);
  run_child();
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  read_ring(session, 0, &records);
  for (size_t i = 0; i < records.count; i++) {
    const struct ptkit_record* head = &records.all[i].head;
    CHECK(head->tid == config.task || (head->type == PTKIT_RECORD_SWITCH && head->tid == -1));
    CHECK(head->cpu < 2);
  }
  find_only(&records, PTKIT_RECORD_EXEC, config.task);
  find_only(&records, PTKIT_RECORD_EXIT, config.task);
  CHECK_EQUAL(find_record(&records, 0, PTKIT_RECORD_FORK, 0), records.count);
  free_records(&records);
  close(pipe_ends[0]);
  close(pipe_ends[1]);
  close(session);
}

static void* note_thread(void* tid) {
  *(pid_t*)tid = (pid_t)syscall(SYS_gettid);
  return NULL;
}

/* They are not traced; a child is no thread of the process. */
void tells_of_threads_that_a_thread_begins(void) {
  struct records records = {NULL, 0};
  struct ptkit_config config = sideband_config(1 << 20);
  pthread_t thread;
  pid_t tid = 0;
  config.target = PTKIT_TARGET_TASK;
  config.task = getpid();
  int session = open_session(config);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_EQUAL(pthread_create(&thread, NULL, note_thread, &tid), 0);
  pthread_join(thread, NULL);
  run_child();
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  read_ring(session, 0, &records);
  size_t fork = find_only(&records, PTKIT_RECORD_FORK, 0);
  CHECK_EQUAL(records.all[fork].head.pid, getpid());
  CHECK_EQUAL(records.all[fork].head.tid, tid);
  CHECK_EQUAL(records.all[fork].fork.parent_tid, getpid());
  for (size_t i = 0; i < records.count; i++)
    CHECK(i == fork || records.all[i].head.tid == getpid() || records.all[i].head.tid == -1);
  free_records(&records);
  close(session);
}

/* This process, and what it begins. */
void tells_of_children(void) {
  struct ptkit_config config = sideband_config(1 << 20);
  config.process = getpid();
  config.flags |= PTKIT_TRACE_CHILDREN;
  int session = open_session(config);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  pid_t first = run_child();
  pid_t second = run_child();
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  struct records records = read_rings(session);
  check_life(&records, first);
  check_life(&records, second);
  for (size_t i = 0; i < records.count; i++) {
    pid_t pid = records.all[i].head.pid;
    CHECK(pid == -1 || pid == getpid() || pid == first || pid == second);
  }
  free_records(&records);
  close(session);
}

/* The first process of a namespace of its own. */
static void opens_as_first(void) {
  int session = open_session(sideband_config(1 << 20));
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  pid_t child = run_child();
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  struct records records = read_rings(session);
  size_t fork = find_only(&records, PTKIT_RECORD_FORK, child);
  CHECK_EQUAL(child, 2);
  CHECK_EQUAL(records.all[fork].fork.parent_pid, 1);
  for (size_t i = 0; i < records.count; i++) CHECK(records.all[i].head.pid <= 2); /* or 0: not to be seen */
  _exit(failures);
}

void numbers_threads_as_the_opener_does(void) {
  int status = 0;
  pid_t child = fork();
  if (child == 0) {
    CHECK_EQUAL(unshare(CLONE_NEWPID), 0);
    pid_t first = fork();
    if (first == 0) opens_as_first();
    waitpid(first, &status, 0);
    _exit(WEXITSTATUS(status));
  }
  waitpid(child, &status, 0);
  CHECK_EQUAL(status, 0);
}

void tells_of_modules(void) {
  int session = open_session(sideband_config(1 << 20));
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_EQUAL(load_module(OTHER_MODULE), 0);
  uint64_t address = module_symbol("other_module_function");
  CHECK_EQUAL(syscall(SYS_delete_module, "other", O_NONBLOCK), 0);
  CHECK_EQUAL(ioctl(session, PTKIT_STOP), 0);
  struct records records = read_rings(session);
  const union record* came = &records.all[find_only(&records, PTKIT_RECORD_MODULE, 0)];
  const union record* gone = &records.all[find_only(&records, PTKIT_RECORD_MODULE_GONE, 0)];
  CHECK(came < gone);
  CHECK(strcmp(came->module.name, "other") == 0 && strcmp(gone->module.name, "other") == 0);
  CHECK(address >= came->module.address && address < came->module.address + came->module.bytes);
  CHECK_EQUAL(gone->module.address, came->module.address);
  CHECK_EQUAL(gone->module.bytes, came->module.bytes);
  free_records(&records);
  close(session);
}

static void* end_at_once(void* nothing) { return nothing; }

/* Threads begin and end, which is recorded. */
static void begin_often(int times) {
  for (int i = 0; i < times; i++) {
    pthread_t thread;
    CHECK_EQUAL(pthread_create(&thread, NULL, end_at_once, NULL), 0);
    pthread_join(thread, NULL);
  }
}

/* Stays on processor 0, so that its ring is the one that fills up. */
static void stay_on_first(bool stay) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(0, &cpus);
  if (!stay) CPU_SET(1, &cpus);
  CHECK_EQUAL(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
}

void counts_lost_records(void) {
  stay_on_first(true);
  int session = open_session(sideband_config(4096));
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  uint64_t told = 0;
  for (int round = 0; round < 20; round++) {
    struct records records = {NULL, 0};
    begin_often(200);
    uint64_t lost = status_of(session, 0).sideband_lost;
    CHECK(lost > told + 100);
    read_ring(session, 0, &records);
    size_t first = find_record(&records, 0, PTKIT_RECORD_LOST, 0);
    CHECK(round == 0 || first == 0);
    /* A second one, where a short record still had room. */
    for (size_t i = first; i < records.count; i++)
      if (records.all[i].head.type == PTKIT_RECORD_LOST) told += records.all[i].lost.count;
    CHECK(told <= lost);
    free_records(&records);
  }
  CHECK(told > 0 && told < status_of(session, 0).sideband_lost);
  CHECK(status_of(session, 0).sideband_head > 20 * 3000);
  struct ptkit_consume consume = {.cpu = 0, .sideband_tail = 1};
  CHECK_FAILS(ioctl(session, PTKIT_CONSUME, &consume), EINVAL);
  consume.sideband_tail = status_of(session, 0).sideband_head + 8192;
  CHECK_FAILS(ioctl(session, PTKIT_CONSUME, &consume), EINVAL);
  close(session);
  stay_on_first(false);
}

static void* begin_soon(void* nothing) {
  usleep(100000);
  begin_often(400);
  return nothing;
}

void wakes_up_at_a_quarter(void) {
  struct ptkit_config config = sideband_config(65536);
  config.process = getpid();
  config.flags &= ~PTKIT_TRACE_KERNEL;
  int session = open_session(config);
  struct pollfd poll_it = {.fd = session, .events = POLLIN};
  pthread_t thread;
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  CHECK_EQUAL(poll(&poll_it, 1, 0), 0);
  pthread_create(&thread, NULL, begin_soon, NULL);
  CHECK_EQUAL(poll(&poll_it, 1, 5000), 1);
  CHECK_EQUAL(poll_it.revents, POLLIN);
  uint64_t written = status_of(session, 0).sideband_head;
  if (written < 16384) written = status_of(session, 1).sideband_head;
  CHECK(written >= 16384);
  pthread_join(thread, NULL);
  struct records records = read_rings(session);
  free_records(&records);
  CHECK_EQUAL(poll(&poll_it, 1, 0), 0);
  close(session);
}

void maps_rings_for_reading_only(void) {
  int session = open_session(sideband_config(8192));
  struct ptkit_buffer buffer = {.cpu = 1};
  CHECK_EQUAL(ioctl(session, PTKIT_BUFFER, &buffer), 0);
  off_t offset = (off_t)buffer.sideband_offset;
  CHECK_EQUAL(buffer.sideband_bytes, 8192);
  void* ring = mmap(NULL, 8192, PROT_READ, MAP_SHARED, session, offset);
  CHECK(ring != MAP_FAILED);
  CHECK_FAILS(mprotect(ring, 8192, PROT_READ | PROT_WRITE), EACCES);
  CHECK_FAILS((long)mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, session, offset), EPERM);
  CHECK_FAILS((long)mmap(NULL, 8192, PROT_READ, MAP_PRIVATE, session, offset), EINVAL);
  CHECK_FAILS((long)mmap(NULL, 12288, PROT_READ, MAP_SHARED, session, offset), EINVAL);
  CHECK_FAILS((long)mmap(NULL, 4096, PROT_READ, MAP_SHARED, session, offset + 4096), EINVAL);
  CHECK_EQUAL(ioctl(session, PTKIT_START), 0);
  close(session); /* the mapping keeps the session: it goes on */
  run_child();
  CHECK_EQUAL(((const struct ptkit_record*)ring)->type, PTKIT_RECORD_SWITCH);
  munmap(ring, 8192);
  int plain = open_session(simple_config(0));
  buffer.cpu = 0;
  CHECK_EQUAL(ioctl(plain, PTKIT_BUFFER, &buffer), 0);
  CHECK_EQUAL(buffer.sideband_bytes, 0);
  CHECK_FAILS((long)mmap(NULL, 4096, PROT_READ, MAP_SHARED, plain, (off_t)1 << 40), EINVAL);
  close(plain);
}
