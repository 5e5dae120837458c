/* A thread that moves between two CPUs. */
#include <sched.h>

#define TURNS 20

static volatile unsigned sum;

int main(void) {
  for (int turn = 0; turn < TURNS; turn++) {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(turn % 2, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) return 1;
    for (unsigned i = 0; i < 300; i++) sum += i % 3 == 0 ? i : 1;
  }
  return 0;
}
