// SPDX-License-Identifier: MIT
/*
 * Random requests, half of them nearly right, on several threads at once, while a processor comes and goes,
 * and while registers, allocations and copies fail now and then.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "faults.h"
#include "machine.h"

#define THREADS 3
#define SESSIONS 4

static atomic_int sessions[SESSIONS];
static atomic_int done;
static atomic_bool over;
static bool steps_fail; /* of the kernel */

static unsigned below(unsigned* seed, unsigned limit) { return (unsigned)rand_r(seed) % limit; }

static void scribble(unsigned* seed, void* bytes, size_t count) {
  static const uint64_t interesting[] = {0, 1, 4096, 65535, 1ULL << 31, 1ULL << 32, 1ULL << 63, ~0ULL};
  unsigned words = below(seed, 4);
  for (unsigned i = 0; i < words; i++) {
    uint64_t value = below(seed, 2) ? interesting[below(seed, 8)] : (uint64_t)rand_r(seed);
    size_t width = 1U << below(seed, 4);
    memcpy((char*)bytes + below(seed, (unsigned)(count / width)) * width, &value, width);
  }
}

/* All of the threads here, one of them, or what the shell of init begins. */
static void follow_somebody(unsigned* seed, struct ptkit_config* config) {
  unsigned how = below(seed, 6);
  if (how == 0) {
    config->target = PTKIT_TARGET_TASK;
    config->cpu = 0;
    config->task = getpid() + (int)below(seed, 5);
  } else if (how < 3) {
    config->process = below(seed, 2) ? getpid() : 1;
    if (below(seed, 2)) config->flags &= ~PTKIT_TRACE_KERNEL;
    if (below(seed, 3) == 0) config->flags |= PTKIT_TRACE_CHILDREN;
  }
}

/* Something to follow. */
static void begin_and_end_a_process(void) {
  pid_t child = fork();
  if (child == 0) {
    execl("/bin/busybox", "busybox", "true", NULL);
    _exit(1);
  }
  waitpid(child, NULL, 0);
}

static struct ptkit_config random_config(unsigned* seed) {
  struct ptkit_config config = simple_config(below(seed, 2));
  if (below(seed, 2)) {
    config.target = PTKIT_TARGET_ALL;
    config.cpu = 0;
  }
  config.buffer_bytes = 4096ULL << below(seed, 8);
  config.mode = below(seed, 2);
  config.output = config.mode == PTKIT_MODE_RING ? below(seed, 2) : 0;
  config.flags |= below(seed, 2) ? PTKIT_TRACE_TSC : 0;
  if (config.mode == PTKIT_MODE_FULL && below(seed, 2)) config.wake_up_bytes = 4096;
  follow_somebody(seed, &config);
  if (below(seed, 2)) config.sideband_bytes = 4096ULL << below(seed, 4);
  if (below(seed, 3) == 0) scribble(seed, &config, sizeof(config));
  if (config.buffer_bytes > 16 << 20) config.buffer_bytes = 8192; /* memory is for all threads */
  if (config.sideband_bytes > 1 << 20) config.sideband_bytes = 8192;
  return config;
}

static unsigned random_request(unsigned* seed) {
  static const unsigned known[] = {PTKIT_QUERY, PTKIT_CONFIGURE, PTKIT_BUFFER, PTKIT_START,    PTKIT_STOP,
                                   PTKIT_PAUSE, PTKIT_RESUME,    PTKIT_STATUS, PTKIT_SNAPSHOT, PTKIT_CONSUME};
  unsigned request = known[below(seed, 10)];
  if (below(seed, 8) == 0)
    request = _IOC(below(seed, 4), PTKIT_IOCTL_TYPE, below(seed, 12), below(seed, 512));
  if (below(seed, 64) == 0) request = (unsigned)rand_r(seed);
  return request;
}

static void map_something(unsigned* seed, int session) {
  off_t offset = (off_t)below(seed, 5) << 40;
  if (below(seed, 4) == 0) offset = (off_t)below(seed, 1 << 20) << 12;
  size_t bytes = (size_t)4096 << below(seed, 8);
  int protection = below(seed, 4) ? PROT_READ : PROT_READ | PROT_WRITE;
  volatile const char* mapped =
      mmap(NULL, bytes, protection, below(seed, 4) ? MAP_SHARED : MAP_PRIVATE, session, offset);
  if ((const void*)mapped == MAP_FAILED) return;
  (void)mapped[below(seed, (unsigned)bytes)];
  munmap((void*)mapped, bytes);
}

/* Most of the time none. Failures of registers hit whichever thread is next. */
static enum fault_kind random_fault(unsigned* seed) {
  enum fault_kind kind = below(seed, 16) ? NO_FAULT : ONE_ACCESS + below(seed, FAULT_KINDS - ONE_ACCESS);
  if (kind == ONE_STEP && !steps_fail) kind = ONE_ACCESS;
  begin_fault(kind, 1 + below(seed, 40));
  return kind;
}

/* Closed while others use it: they get EBADF, or somebody else's new session. */
static void renew(unsigned* seed, unsigned slot) {
  int fresh = open_device();
  struct ptkit_config config = random_config(seed);
  enum fault_kind fault = random_fault(seed);
  ioctl(fresh, PTKIT_CONFIGURE, &config);
  close(atomic_exchange(&sessions[slot], fresh));
  end_fault(fault);
}

static void* make_requests(void* first_seed) {
  static _Thread_local uint64_t argument[128];
  static _Thread_local uint8_t room[65536];
  unsigned seed = *(unsigned*)first_seed;
  while (!atomic_load(&over)) {
    unsigned slot = below(&seed, SESSIONS);
    int session = atomic_load(&sessions[slot]);
    unsigned request = random_request(&seed);
    memset(argument, 0, sizeof(argument));
    argument[0] = below(&seed, 2); /* a processor, in most */
    if (_IOC_NR(request) == _IOC_NR(PTKIT_CONFIGURE)) {
      struct ptkit_config config = random_config(&seed);
      memcpy(argument, &config, sizeof(config));
    } else if (_IOC_NR(request) == _IOC_NR(PTKIT_SNAPSHOT)) {
      argument[1] = (uintptr_t)room;
      argument[2] = below(&seed, sizeof(room));
    } else {
      scribble(&seed, argument, 64);
    }
    enum fault_kind fault = random_fault(&seed);
    ioctl(session, request, below(&seed, 32) ? (uintptr_t)argument : (uintptr_t)rand_r(&seed));
    end_fault(fault);
    if (below(&seed, 4) == 0) map_something(&seed, session);
    if (below(&seed, 16) == 0) renew(&seed, slot);
    atomic_fetch_add(&done, 1);
  }
  return NULL;
}

int fuzz_driver(unsigned seconds) {
  static unsigned seeds[THREADS] = {1, 2, 3};
  pthread_t threads[THREADS];
  time_t end = time(NULL) + seconds;
  steps_fail = prepare_faults();
  for (unsigned i = 0; i < SESSIONS; i++) sessions[i] = open_device();
  for (unsigned i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, make_requests, &seeds[i]);
  while (time(NULL) < end) {
    set_online(1, false);
    usleep(100000);
    set_online(1, true);
    begin_and_end_a_process();
    set_parameter("model_registers", 0); /* units that could not be stopped can be used again */
    usleep(100000);
  }
  atomic_store(&over, true);
  for (unsigned i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  for (unsigned i = 0; i < SESSIONS; i++) close(sessions[i]);
  printf("# %d random requests\n", atomic_load(&done));
  return done;
}
