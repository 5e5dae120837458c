/* Threads of which each function notes the time while it works. Prints clock, thread, function and time. */
#include <pthread.h>
#include <stdio.h>
#include <time.h>

#define APART __attribute__((noinline, noclone))
enum { THREADS = 2, ROUNDS = 20, FUNCTIONS = 3 };

struct note {
  const char* function;
  long long monotonic;
  long long realtime;
};
static struct note notes[THREADS][ROUNDS * FUNCTIONS];
static _Thread_local struct note* next;
static _Thread_local volatile unsigned sink;

static long long now(clockid_t clock) {
  struct timespec time;
  clock_gettime(clock, &time);
  return time.tv_sec * 1000000000LL + time.tv_nsec;
}

static void work(unsigned turns) {
  for (unsigned i = 0; i < turns; ++i) sink = sink * 3 + (i & 7 ? i : 1);
}

static void note(const char* function) {
  next->function = function;
  next->monotonic = now(CLOCK_MONOTONIC);
  next->realtime = now(CLOCK_REALTIME);
  ++next;
}

APART void alpha(void) {
  work(3000);
  note("alpha");
  work(3000);
}
APART void beta(void) {
  work(2000);
  note("beta");
  work(4000);
}
APART void outer(void) {
  beta();
  work(3000);
  note("outer");
  work(3000);
}

static void* run(void* own) {
  next = own;
  for (int i = 0; i < ROUNDS; ++i) {
    alpha();
    outer();
  }
  return NULL;
}

int main(void) {
  pthread_t other;
  pthread_create(&other, NULL, run, notes[1]);
  run(notes[0]);
  pthread_join(other, NULL);
  for (int thread = 0; thread < THREADS; ++thread) {
    for (int i = 0; i < ROUNDS * FUNCTIONS; ++i) {
      const struct note* one = &notes[thread][i];
      printf("%d %s %lld %lld\n", thread, one->function, one->monotonic, one->realtime);
    }
  }
  return 0;
}
