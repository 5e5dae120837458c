// SPDX-License-Identifier: MIT
#define _GNU_SOURCE
#include <pthread.h>
#include <sanitizer/asan_interface.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "host.h"

static int memory = -1;
static _Thread_local uint32_t cpu_of_thread = HOST_NO_CPU;

void* host_make_memory(uint64_t bytes) {
  memory = memfd_create("memory", MFD_CLOEXEC);
  if (memory < 0 || ftruncate(memory, (off_t)bytes) != 0) return NULL;
  void* address = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, memory, 0);
  return address == MAP_FAILED ? NULL : address;
}

void* host_map(const uint64_t* offsets, uint32_t count) {
  char* address = mmap(NULL, count * HOST_RUN_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) return NULL;
  for (uint32_t i = 0; i < count; i++)
    if (mmap(address + i * HOST_RUN_BYTES, HOST_RUN_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
             memory, (off_t)offsets[i]) == MAP_FAILED)
      abort();
  return address;
}

void host_unmap(void* address, uint32_t count) { munmap(address, count * HOST_RUN_BYTES); }

void host_forbid(const void* address, size_t bytes, bool forbidden) {
  if (forbidden)
    ASAN_POISON_MEMORY_REGION(address, bytes);
  else
    ASAN_UNPOISON_MEMORY_REGION(address, bytes);
}

void* host_allocate(size_t bytes) { return calloc(1, bytes); }

void host_free(void* address) { free(address); }

void* host_make_lock(void) {
  pthread_mutex_t* lock = host_allocate(sizeof(*lock));
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
  pthread_mutex_init(lock, &attributes);
  return lock;
}

void host_take(void* lock) {
  if (pthread_mutex_lock(lock) != 0) abort();
}

void host_release(void* lock) {
  if (pthread_mutex_unlock(lock) != 0) abort();
}

struct event {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  bool is_set;
};

void* host_make_event(void) {
  struct event* event = host_allocate(sizeof(*event));
  pthread_mutex_init(&event->lock, NULL);
  pthread_cond_init(&event->changed, NULL);
  return event;
}

void host_end_event(void* event) { host_free(event); }

void host_set(void* argument) {
  struct event* event = argument;
  pthread_mutex_lock(&event->lock);
  event->is_set = true;
  pthread_cond_signal(&event->changed);
  pthread_mutex_unlock(&event->lock);
}

static struct timespec later(uint32_t ms) {
  struct timespec time;
  clock_gettime(CLOCK_REALTIME, &time);
  time.tv_sec += ms / 1000;
  time.tv_nsec += (long)(ms % 1000) * 1000000;
  if (time.tv_nsec >= 1000000000) {
    time.tv_sec++;
    time.tv_nsec -= 1000000000;
  }
  return time;
}

bool host_wait(void* argument, uint32_t most_ms) {
  struct event* event = argument;
  struct timespec end = later(most_ms);
  int error = 0;
  pthread_mutex_lock(&event->lock);
  while (!event->is_set && error == 0) error = pthread_cond_timedwait(&event->changed, &event->lock, &end);
  bool was_set = event->is_set;
  event->is_set = false;
  pthread_mutex_unlock(&event->lock);
  return was_set;
}

struct start {
  host_function function;
  void* context;
};

static void* run(void* argument) {
  struct start start = *(struct start*)argument;
  host_free(argument);
  start.function(start.context);
  return NULL;
}

void* host_begin_thread(host_function function, void* context) {
  struct start* start = host_allocate(sizeof(*start));
  pthread_t thread;
  start->function = function;
  start->context = context;
  if (pthread_create(&thread, NULL, run, start) != 0) abort();
  return (void*)thread;
}

void host_join(void* thread) { pthread_join((pthread_t)thread, NULL); }

void host_yield(void) { sched_yield(); }

uint32_t host_cpu(void) { return cpu_of_thread; }

void host_bind(uint32_t cpu) { cpu_of_thread = cpu; }

uint32_t host_thread(void) { return (uint32_t)gettid(); }

uint64_t host_time_ms(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000 + (uint64_t)time.tv_nsec / 1000000;
}

void host_report(const char* line) { fprintf(stderr, "# %s", line); }

static uint8_t setup[4096];
static uint32_t setup_bytes;

bool host_write_setup(const void* bytes, uint32_t count) {
  if (count > sizeof(setup)) return false;
  if (count != 0) memcpy(setup, bytes, count);
  setup_bytes = count;
  return true;
}

uint32_t host_read_setup(void* bytes, uint32_t room) {
  uint32_t count = setup_bytes < room ? setup_bytes : room;
  memcpy(bytes, setup, count);
  return count;
}
