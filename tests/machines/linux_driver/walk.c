// SPDX-License-Identifier: MIT
/*
 * All sequences of up to six requests, in each of which any step may fail.
 *
 * The walk is breadth first over what a session can be: its state, what the driver tells of its
 * traces, and the registers of the model. From each such node, which a shortest sequence leads to,
 * every request is made, and made again with a failure at its first step that can fail, its second
 * one, and so on until it has no more of them; close() likewise. Sequences that lead to the same node
 * go on in the same way, so only one of them goes on; that it is the same node each time is checked.
 * All sequences of a few requests without failures are run besides, whatever state they lead to.
 *
 * After each request the driver must be in the state that the table in session.c has, and after
 * each close() nothing may be left.
 */
#define _GNU_SOURCE
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cases.h"
#include "check.h"
#include "faults.h"
#include "machine.h"

#define MOST_REQUESTS 6
#define MOST_NODES 4096
#define MOST_STEPS 5000 /* of a request */
#define PARAMETERS "/sys/module/ptkit/parameters/"

/* PROCESS_ENDS: the one that is followed. CPU_CHANGES: the second processor goes, or comes back. */
enum request {
  CONFIGURE,
  START,
  PAUSE,
  RESUME,
  STOP,
  SNAPSHOT,
  CONSUME,
  DRIVER_REQUESTS,
  PROCESS_ENDS = DRIVER_REQUESTS,
  CPU_CHANGES,
  REQUESTS
};
static const char* const names[] = {
    [CONFIGURE] = "CONFIGURE",
    [START] = "START",
    [PAUSE] = "PAUSE",
    [RESUME] = "RESUME",
    [STOP] = "STOP",
    [SNAPSHOT] = "SNAPSHOT",
    [CONSUME] = "CONSUME",
    [PROCESS_ENDS] = "the process ends",
    [CPU_CHANGES] = "CPU 1 changes",
    [REQUESTS] = "close",
};

enum state { OPEN, CONFIGURED, STARTED, STOPPING };

struct step {
  enum request request;
  enum fault_kind fault;
  unsigned number;
};

/*
 * Decides how a session goes on; without padding, for it is compared as bytes. Facts that the driver only
 * reports are left out: TraceEn found clear, errors of a session that is not started, and which error it was.
 */
struct key {
  enum state state;
  int paused;
  int alive;            /* the process that is followed */
  int online;           /* the second processor */
  long enabled;         /* processors whose TraceEn is set */
  unsigned long traces; /* that it has: none of a processor that was offline when it was configured */
  uint32_t flags[2];
  int32_t error[2];
};

struct node {
  struct key key;
  unsigned depth;
  struct step steps[MOST_REQUESTS];
};

struct kind {
  const char* name;
  void (*change)(struct ptkit_config* config, pid_t child);
  unsigned traces;
  bool with_child;
  bool with_cpu;
};

/* A session that is walked with. */
struct life {
  const struct kind* kind;
  int session;
  pid_t child;
  struct key key;
};

static struct node nodes[MOST_NODES];
static unsigned node_count;
static unsigned long runs;
static bool steps_fail; /* of the kernel */

static void whole_machine(struct ptkit_config* config, pid_t child) {
  (void)child;
  config->mode = PTKIT_MODE_RING;
}

static void with_wake_ups(struct ptkit_config* config, pid_t child) {
  (void)child;
  config->buffer_bytes = 16384;
  config->wake_up_bytes = 4096;
}

static void process_by_cr3(struct ptkit_config* config, pid_t child) {
  config->mode = PTKIT_MODE_RING;
  config->flags &= ~PTKIT_TRACE_KERNEL;
  config->process = child ? child : getpid();
}

static void process_with_sideband(struct ptkit_config* config, pid_t child) {
  process_by_cr3(config, child);
  config->sideband_bytes = 4096;
}

static void process_with_children(struct ptkit_config* config, pid_t child) {
  process_with_sideband(config, child);
  config->flags |= PTKIT_TRACE_KERNEL | PTKIT_TRACE_CHILDREN;
}

static void thread_with_sideband(struct ptkit_config* config, pid_t child) {
  config->mode = PTKIT_MODE_RING;
  config->target = PTKIT_TARGET_TASK;
  config->task = child ? child : getpid();
  config->sideband_bytes = 4096;
}

static void branches(struct ptkit_config* config, pid_t child) {
  (void)child;
  config->mode = PTKIT_MODE_RING;
  config->output = PTKIT_OUTPUT_BTS;
  config->buffer_bytes = 1 << 20; /* context switches do not fill it */
}

static const struct kind kinds[] = {
    {"whole_machine", whole_machine, 2, false, false},
    {"wake_ups", with_wake_ups, 2, false, false},
    {"process_by_cr3", process_with_sideband, 2, false, false},
    {"process_with_children", process_with_children, 2, false, false},
    {"thread", thread_with_sideband, 1, false, false},
    {"process_that_ends", process_by_cr3, 2, true, false},
    {"processor_that_goes", process_with_sideband, 2, false, true},
    {"branches", branches, 2, false, false},
};

static long parameter(const char* name) {
  char path[128];
  snprintf(path, sizeof(path), PARAMETERS "%s", name);
  return read_number(path, "");
}

static pid_t begin_child(void) {
  pid_t child = fork();
  if (child == 0)
    for (;;) pause();
  CHECK(child > 0);
  return child;
}

static void end_child(struct life* life) {
  if (!life->key.alive) return;
  kill(life->child, SIGKILL);
  CHECK_EQUAL(waitpid(life->child, NULL, 0), life->child);
  life->key.alive = false;
}

static int configure(const struct life* life) {
  struct ptkit_config config = simple_config(0);
  config.target = PTKIT_TARGET_ALL;
  config.buffer_bytes = 4096;
  life->kind->change(&config, life->child);
  return ioctl(life->session, PTKIT_CONFIGURE, &config);
}

static int take_snapshot(const struct life* life) {
  static uint8_t room[4096];
  struct ptkit_snapshot snapshot = {.address = (uintptr_t)room, .bytes = sizeof(room)};
  return ioctl(life->session, PTKIT_SNAPSHOT, &snapshot);
}

static int consume_nothing(const struct life* life) {
  struct ptkit_consume consume = {0};
  return ioctl(life->session, PTKIT_CONSUME, &consume);
}

static void change_cpu(struct life* life) {
  life->key.online = !life->key.online;
  set_online(1, life->key.online);
}

/* 0 or errno. */
static int make(struct life* life, enum request request) {
  static const unsigned plain[] = {
      [START] = PTKIT_START, [PAUSE] = PTKIT_PAUSE, [RESUME] = PTKIT_RESUME, [STOP] = PTKIT_STOP};
  int done = 0;
  switch (request) {
    case CONFIGURE:
      done = configure(life);
      break;
    case SNAPSHOT:
      done = take_snapshot(life);
      break;
    case CONSUME:
      done = consume_nothing(life);
      break;
    case PROCESS_ENDS:
      end_child(life);
      break;
    case CPU_CHANGES:
      change_cpu(life);
      break;
    default:
      done = ioctl(life->session, plain[request]);
  }
  return done ? errno : 0;
}

/* The errno with which the state alone refuses a request; 0: it does not. */
static int refusal(enum state state, enum request request) {
  if (request >= DRIVER_REQUESTS) return 0;
  if (request == CONFIGURE) return state == OPEN ? 0 : EBUSY;
  if (state == OPEN) return EINVAL;
  if (request == START) return state == CONFIGURED ? 0 : EBUSY;
  if (request == STOP) return state == CONFIGURED ? EINVAL : 0;
  if (request == CONSUME) return 0;
  return state == STARTED ? 0 : EINVAL;
}

static bool has_error(const struct life* life) { return life->key.error[0] || life->key.error[1]; }

/* A unit that could not be stopped when its processor went: nothing can reach it before that is back. */
static bool is_out_of_reach(const struct life* life) {
  return !life->key.online && (life->key.flags[1] & PTKIT_STATUS_RUNNING);
}

/* Whether a request may fail with this error while no step fails. */
static bool may_give(const struct life* life, enum request request, int error) {
  if (error == 0) return true;
  if (request == START || request == CONFIGURE)
    return error == ESRCH && life->kind->with_child && !life->key.alive;
  if (request == SNAPSHOT && life->kind->change == with_wake_ups) return error == EINVAL;
  if (request == STOP) return error == EIO && is_out_of_reach(life);
  return has_error(life); /* of an earlier request */
}

static void read_key(struct life* life) {
  struct key* key = &life->key;
  key->enabled = parameter("model_enabled");
  for (uint32_t cpu = 0; cpu < key->traces; cpu++) {
    struct ptkit_status status = status_of(life->session, cpu);
    key->flags[cpu] = status.flags & ~PTKIT_STATUS_CLEARED;
    key->error[cpu] = status.error != 0;
  }
}

static void leave_out_reports(struct key* key) {
  if (key->state == STARTED) return;
  key->paused = false;
  memset(key->error, 0, sizeof(key->error));
}

static unsigned count_started(const struct life* life) {
  unsigned count = 0;
  for (uint32_t cpu = 0; cpu < life->key.traces; cpu++) count += life->key.flags[cpu] & PTKIT_STATUS_STARTED;
  return count;
}

/* By the table in session.c. */
static void enter_state(struct life* life, enum request request, int error) {
  enum state* state = &life->key.state;
  if (request == CONFIGURE && *state == OPEN && error == 0) {
    *state = CONFIGURED;
    life->key.traces = life->key.online ? life->kind->traces : 1;
  }
  read_key(life);
  unsigned started = count_started(life);
  if (request == START && *state == CONFIGURED)
    *state = error == 0 ? STARTED : started ? STOPPING : CONFIGURED;
  if (request == STOP && *state >= STARTED) {
    *state = started ? STOPPING : CONFIGURED;
    CHECK_EQUAL(error == 0, started == 0);
  }
  if (request == PAUSE || request == RESUME) life->key.paused = request == PAUSE;
  leave_out_reports(&life->key);
  CHECK_EQUAL(parameter("model_in_use"), *state >= STARTED);
  CHECK(*state >= STARTED || (started == 0 && life->key.enabled == 0));
  CHECK(*state != STARTED || started == life->key.traces);
  CHECK(*state != STOPPING || started > 0);
}

/* Whether the failure was reached. */
static bool perform(struct life* life, const struct step* step) {
  int refused = refusal(life->key.state, step->request);
  begin_fault(step->fault, step->number);
  int error = make(life, step->request);
  bool reached = end_fault(step->fault);
  if (refused != 0 && !reached) CHECK_EQUAL(error, refused);
  if (refused != 0) CHECK(error != 0);
  if (refused == 0 && !reached) CHECK(may_give(life, step->request, error));
  enter_state(life, step->request, error);
  return reached;
}

static struct life begin_life(const struct kind* kind) {
  struct life life = {.kind = kind};
  if (kind->with_child) life.child = begin_child(); /* before it would inherit the session */
  life.session = open_device();
  CHECK(life.session >= 0);
  set_parameter("model_bytes", 100);
  set_parameter("model_registers", 0); /* how many registers are accessed depends on what they have */
  life.key.online = true;
  life.key.alive = kind->with_child;
  read_key(&life);
  return life;
}

/* Whether the failure was reached: then there may be a unit that could not be stopped. */
static bool end_life(struct life* life, enum fault_kind fault, unsigned number) {
  begin_fault(fault, number);
  CHECK_EQUAL(close(life->session), 0);
  bool reached = end_fault(fault);
  CHECK_EQUAL(parameter("model_in_use"), 0);
  CHECK(reached || is_out_of_reach(life) || parameter("model_enabled") == 0);
  end_child(life);
  if (!life->key.online) change_cpu(life);
  runs++;
  return reached;
}

static void print_steps(const struct node* node, const struct step* last) {
  for (unsigned i = 0; i < node->depth; i++)
    printf("# %s, failure %u at %u\n", names[node->steps[i].request], node->steps[i].fault,
           node->steps[i].number);
  printf("# then %s, failure %u at %u\n", names[last->request], last->fault, last->number);
}

static void add_node(const struct node* from, const struct step* step, const struct key* key) {
  for (unsigned i = 0; i < node_count; i++)
    if (memcmp(&nodes[i].key, key, sizeof(*key)) == 0) return;
  CHECK(node_count < MOST_NODES);
  if (node_count == MOST_NODES) return;
  struct node* node = &nodes[node_count++];
  *node = *from;
  node->key = *key;
  node->steps[node->depth++] = *step;
}

static struct life come_to(const struct kind* kind, const struct node* node) {
  struct life life = begin_life(kind);
  for (unsigned i = 0; i < node->depth; i++) perform(&life, &node->steps[i]);
  CHECK(memcmp(&life.key, &node->key, sizeof(life.key)) == 0);
  return life;
}

/* Whether the failure was reached. REQUESTS stands for close(). */
static bool go_on(const struct kind* kind, unsigned from, struct step step) {
  int before = failures;
  struct node node = nodes[from];
  struct life life = come_to(kind, &node);
  bool reached = false;
  if (step.request == REQUESTS) {
    reached = end_life(&life, step.fault, step.number);
  } else {
    reached = perform(&life, &step);
    if (node.depth < MOST_REQUESTS - 1) add_node(&node, &step, &life.key);
    end_life(&life, NO_FAULT, 0);
  }
  if (failures > before) print_steps(&node, &step);
  return reached;
}

static bool can_be_made(const struct kind* kind, enum request request) {
  return (request != PROCESS_ENDS || kind->with_child) && (request != CPU_CHANGES || kind->with_cpu);
}

/* Processors take long to come and go: there only this fails. */
static bool may_fail(const struct kind* kind, enum request request, enum fault_kind fault) {
  if (kind->with_cpu) return request == CPU_CHANGES && fault == ONE_ACCESS;
  return fault != ONE_STEP || (steps_fail && request != PROCESS_ENDS);
}

static void go_on_in_all_ways(const struct kind* kind, unsigned from, enum request request) {
  unsigned number = 1;
  go_on(kind, from, (struct step){request, NO_FAULT, 0});
  if (request != REQUESTS && refusal(nodes[from].key.state, request) != 0) return;
  for (enum fault_kind fault = ONE_ACCESS; fault < FAULT_KINDS; fault++) {
    if (!may_fail(kind, request, fault)) continue;
    for (number = 1; number < MOST_STEPS && failures < 10; number++)
      if (!go_on(kind, from, (struct step){request, fault, number})) break;
    CHECK(number < MOST_STEPS);
  }
}

static void walk(const struct kind* kind) {
  unsigned long before = runs;
  struct life life = begin_life(kind);
  node_count = 1;
  nodes[0] = (struct node){.key = life.key};
  end_life(&life, NO_FAULT, 0);
  for (unsigned from = 0; from < node_count && failures < 10; from++) {
    for (enum request request = 0; request <= REQUESTS; request++)
      if (can_be_made(kind, request)) go_on_in_all_ways(kind, from, request);
  }
  CHECK_EQUAL(unload_module(), 0); /* nothing holds it */
  CHECK_EQUAL(load_module(MODEL_MODULE), 0);
  printf("# %s: %u states, %lu requests in all ways\n", kind->name, node_count, runs - before);
}

/* Whatever state they lead to. */
static void run_sequences(const struct kind* kind, unsigned length) {
  unsigned count = 1;
  for (unsigned i = 0; i < length; i++) count *= DRIVER_REQUESTS;
  for (unsigned sequence = 0; sequence < count && failures < 10; sequence++) {
    struct life life = begin_life(kind);
    unsigned rest = sequence;
    for (unsigned i = 0; i < length; i++, rest /= DRIVER_REQUESTS)
      perform(&life, &(struct step){rest % DRIVER_REQUESTS, NO_FAULT, 0});
    end_life(&life, NO_FAULT, 0);
  }
  printf("# %s: all %u sequences of %u requests\n", kind->name, count, length);
}

static void pin(unsigned cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  CHECK_EQUAL(sched_setaffinity(0, sizeof(cpus), &cpus), 0);
}

/* Where a followed thread is preempted, the driver accesses registers: a failure would come elsewhere. */
static void run_before_others(void) {
  struct sched_param parameters = {.sched_priority = 1};
  write_file("/proc/sys/kernel/sched_rt_runtime_us", "-1");
  CHECK_EQUAL(sched_setscheduler(0, SCHED_FIFO, &parameters), 0);
}

/* "walk_kind=NAME" among the kernel's parameters: that kind of session only. */
void walks_all_sequences_of_requests(void) {
  struct ptkit_query query = {0};
  const char* only = getenv("walk_kind");
  int session = open_device();
  CHECK_EQUAL(ioctl(session, PTKIT_QUERY, &query), 0);
  close(session);
  pin(0);
  run_before_others();
  write_file("/sys/kernel/rcu_expedited", "1");
  steps_fail = prepare_faults();
  printf("# requests: failures %s\n", steps_fail ? "of registers and of the kernel" : "of registers");
  for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
    if (kinds[i].change == branches && !(query.features & PTKIT_FEATURE_BTS)) continue;
    if (only && strcmp(only, kinds[i].name) != 0) continue;
    if (i == 0) run_sequences(&kinds[i], 4);
    walk(&kinds[i]);
  }
  write_file("/sys/kernel/rcu_expedited", "0");
}
