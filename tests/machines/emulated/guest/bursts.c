// Executes branches in bursts: bursts COUNT BRANCHES PAUSE_MS. On its processor no recorder runs during a
// burst, whatever the clock: what a buffer does not hold is lost.
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static unsigned state = 1;

static unsigned burst(unsigned branches) {
  unsigned taken = 0;
  for (unsigned i = 0; i < branches; ++i) {
    state = state * 1103515245U + 12345U;
    if ((state >> 16U & 1U) != 0) ++taken;
    __asm__ volatile("" : "+r"(taken));
  }
  return taken;
}

int main(int argc, char** argv) {
  if (argc != 4) return 1;
  const long pause_ms = atol(argv[3]);
  const struct timespec pause = {pause_ms / 1000, pause_ms % 1000 * 1000000};
  const struct sched_param above_others = {.sched_priority = 1};
  if (sched_setscheduler(0, SCHED_FIFO, &above_others) != 0) return 1;
  unsigned taken = 0;
  for (long count = atol(argv[1]); count > 0; --count) {
    taken += burst((unsigned)atol(argv[2]));
    nanosleep(&pause, NULL);
  }
  return printf("%u\n", taken) < 0;
}
