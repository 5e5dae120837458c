/* Threads that are cancelled in recursion, with cleanup functions on the way, and one that ends itself there.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline, noclone, noipa))

enum { kRounds = 3 };

static volatile unsigned long cleaned, entered;
static pthread_barrier_t ready;

APART static void clean(void* what) {
  (void)what;
  ++cleaned;
}

APART int deep(int depth, int leave) {
  int sum = 0;
  ++entered;
  pthread_cleanup_push(clean, NULL);
  if (depth == 0) {
    pthread_barrier_wait(&ready);
    if (leave) pthread_exit(NULL);
    for (;;) pthread_testcancel();
  }
  sum = deep(depth - 1, leave) + 1;
  pthread_cleanup_pop(1);
  return sum;
}

APART void* work(void* leave) {
  deep(4, leave != NULL);
  return NULL;
}

int main(void) {
  pthread_barrier_init(&ready, NULL, 2);
  for (int i = 0; i < kRounds; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, work, i % 2 == 0 ? NULL : &ready);
    pthread_barrier_wait(&ready);
    if (i % 2 == 0) pthread_cancel(thread);
    pthread_join(thread, NULL);
  }
  printf("entered %lu cleaned %lu\n", entered, cleaned);
  return 0;
}
