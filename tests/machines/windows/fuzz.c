// SPDX-License-Identifier: MIT
/* Random requests, half of them nearly right, on several threads at once, while registers and allocations
 * fail. */
#include <stdlib.h>
#include <string.h>

#include "cases.h"
#include "check.h"
#include "host.h"
#include "session.h"

#define THREADS 3
#define SECONDS 5

static volatile bool over;
static volatile uint64_t done[THREADS];

static uint32_t below(uint64_t* seed, uint32_t limit) {
  *seed = *seed * 6364136223846793005ULL + 1442695040888963407ULL;
  return (uint32_t)((*seed >> 33) % limit);
}

static void scribble(uint64_t* seed, void* bytes, uint32_t count) {
  static const uint64_t interesting[] = {0, 1, 4096, 65535, 1ULL << 31, 1ULL << 32, 1ULL << 63, ~0ULL};
  for (uint32_t words = below(seed, 4); words != 0 && count >= 8; words--) {
    uint64_t value = below(seed, 2) ? interesting[below(seed, 8)] : below(seed, 1 << 20);
    uint32_t width = 1U << below(seed, 4);
    memcpy((char*)bytes + below(seed, count / width) * width, &value, width);
  }
}

static struct ptkit_windows_config random_config(uint64_t* seed) {
  struct ptkit_windows_config config = simple_config(below(seed, MODEL_CPUS));
  if (below(seed, 3) == 0) {
    config.config.target = PTKIT_TARGET_AFFINITY;
    config.config.cpu = 0;
    config.affinity[0] = below(seed, 16);
  }
  config.config.buffer_bytes = 4096ULL << below(seed, 8);
  config.config.output = below(seed, 3);
  config.config.mode = below(seed, 2);
  config.config.wake_up_bytes = below(seed, 2) ? 4096ULL << below(seed, 4) : 0;
  config.config.sideband_bytes = below(seed, 2) ? 4096ULL << below(seed, 4) : 0;
  config.config.process = below(seed, 3) == 0 ? USER_PROCESS : 0;
  if (below(seed, 3) == 0) scribble(seed, &config, sizeof(config));
  if (config.config.buffer_bytes > 4 << 20) config.config.buffer_bytes = 1ULL << (20 + below(seed, 44));
  return config;
}

static uint32_t random_request(uint64_t* seed) {
  static const uint32_t codes[] = {
      PTKIT_WINDOWS_QUERY,  PTKIT_WINDOWS_CONFIGURE, PTKIT_WINDOWS_BUFFER, PTKIT_WINDOWS_START,
      PTKIT_WINDOWS_START,  PTKIT_WINDOWS_STOP,      PTKIT_WINDOWS_PAUSE,  PTKIT_WINDOWS_RESUME,
      PTKIT_WINDOWS_STATUS, PTKIT_WINDOWS_SNAPSHOT,  PTKIT_WINDOWS_READ,   PTKIT_WINDOWS_CONSUME,
      PTKIT_WINDOWS_LBR,    PTKIT_WINDOWS_REFUSAL,   MODEL_EXECUTE,        MODEL_EXECUTE};
  uint32_t code = codes[below(seed, 16)];
  return below(seed, 16) == 0 ? PTKIT_WINDOWS_CODE(below(seed, 64), below(seed, 4)) : code;
}

/* Most of the time nothing fails. After a unit that could not be stopped, the driver stays. */
static void fail_now_and_then(uint64_t* seed, void* session) {
  uint32_t how = below(seed, 64);
  if (how == 0 && may_be_abandoned) set_model(session, MODEL_FAULT, 0, below(seed, 30));
  if (how == 1) set_model(session, MODEL_ALLOCATIONS, 0, below(seed, 30));
  if (how == 2) set_model(session, MODEL_SWALLOW, 0, below(seed, 3));
  if (how == 3) set_model(session, MODEL_CLEAR_TRACE_EN, below(seed, MODEL_CPUS), 1);
  if (how == 4) tell(session, MODEL_TELL_PROCESS, USER_PROCESS, 1, false);
  if (how == 5) tell(session, MODEL_TELL_POWER, 0, 0, below(seed, 2));
  if (how > 5 && how < 8) set_model(session, MODEL_ALLOCATIONS, 0, UINT64_MAX);
}

static void* renew(uint64_t* seed, void* session) {
  struct ptkit_windows_config config = random_config(seed);
  if (session != NULL) device_close(session);
  session = device_open();
  if (session != NULL)
    device_request(session, PTKIT_WINDOWS_CONFIGURE, &config, sizeof(config), &config, sizeof(config), NULL);
  return session;
}

static void request_anything(uint64_t* seed, void* session) {
  static _Thread_local uint64_t in[512];
  static _Thread_local uint64_t out[16384];
  uint32_t code = random_request(seed);
  uint32_t in_bytes = below(seed, 2) ? below(seed, 1024) : sizeof(struct ptkit_windows_config);
  memset(in, 0, sizeof(in));
  in[0] = below(seed, MODEL_CPUS);
  if (code == MODEL_EXECUTE) {
    struct model_execute wanted = {below(seed, MODEL_CPUS), below(seed, MODEL_THREADS), below(seed, 2000), 0,
                                   (uint64_t)USER_PROCESS << 16};
    memcpy(in, &wanted, sizeof(wanted));
    in_bytes = sizeof(wanted);
  } else if (below(seed, 3) == 0) {
    scribble(seed, in, sizeof(in) / 8);
  }
  void* request =
      device_begin(session, code, in, in_bytes, out, below(seed, 8) ? sizeof(out) : below(seed, 64));
  int32_t status = device_finish(request, 0, NULL);
  for (int i = 0; status == DEVICE_PENDING; i++) {
    if (i > 1) device_cancel(request);
    status = device_finish(request, 5, NULL);
  }
}

static void make_requests(void* number) {
  uint64_t seed = 1 + (uint64_t)(uintptr_t)number;
  void* session = NULL;
  while (!over) {
    if (session == NULL || below(&seed, 24) == 0) session = renew(&seed, session);
    if (session == NULL) continue; /* the pool is empty: it is told so that it is not */
    fail_now_and_then(&seed, session);
    request_anything(&seed, session);
    done[(uintptr_t)number]++;
  }
  if (session != NULL) device_close(session);
}

void survives_nonsense(void) {
  const char* wanted = getenv("PTKIT_FUZZ_SECONDS");
  uint64_t seconds = wanted == NULL ? SECONDS : strtoull(wanted, NULL, 10);
  uint64_t end = host_time_ms() + 1000 * (seconds == 0 ? SECONDS : seconds);
  void* threads[THREADS];
  void* device = device_open();
  void* event = host_make_event();
  over = false;
  may_be_abandoned = getenv("PTKIT_FUZZ_FAULTS") != NULL;
  for (uintptr_t i = 0; i < THREADS; i++) threads[i] = host_begin_thread(make_requests, (void*)i);
  while (host_time_ms() < end) {
    host_wait(event, 100);
    set_model(device, MODEL_ALLOCATIONS, 0, UINT64_MAX);
    set_model(device, MODEL_FAULT_CTL, 0, 0);
  }
  over = true;
  for (int i = 0; i < THREADS; i++) host_join(threads[i]);
  reset_model(device);
  tell(device, MODEL_TELL_POWER, 0, 0, true);
  CHECK_EQUAL(counts_of(device).strays, 0);
  printf("# %llu random requests\n", (unsigned long long)(done[0] + done[1] + done[2]));
  device_close(device);
  host_end_event(event);
  if (may_be_abandoned) return;
  device = open_session(simple_config(0));
  CHECK_EQUAL(command(device, PTKIT_WINDOWS_START), DEVICE_SUCCESS);
  device_close(device);
}
