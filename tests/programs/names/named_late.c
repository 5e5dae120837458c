/* Threads that another one names right before they end. */
#define _GNU_SOURCE
#include <pthread.h>
#include <stdio.h>

enum { THREADS = 40, ROUNDS = 5 };
static pthread_barrier_t named;

static void* end(void* unused) {
  (void)unused;
  pthread_barrier_wait(&named);
  return NULL;
}

int main(void) {
  pthread_t threads[THREADS];
  pthread_barrier_init(&named, NULL, THREADS + 1);
  for (int round = 0; round < ROUNDS; ++round) {
    for (int i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, end, NULL);
    for (int i = 0; i < THREADS; ++i) {
      char name[16];
      snprintf(name, sizeof name, "late-%d-%d", round, i);
      pthread_setname_np(threads[i], name);
    }
    pthread_barrier_wait(&named);
    for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  }
  return 0;
}
