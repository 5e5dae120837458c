/* Three threads that call, return, branch and wait for each other. Argument: how long. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

static atomic_int total;
static int limit = 30;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static int collatz(int n) {
  int steps = 0;
  for (; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  return steps;
}

static void* work(void* first) {
  for (int n = (int)(long)first; n < limit; n += 3) {
    pthread_mutex_lock(&lock);
    total += collatz(n);
    pthread_mutex_unlock(&lock);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc > 1) limit = atoi(argv[1]);
  pthread_t threads[3];
  for (long i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, work, (void*)(i + 1));
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  printf("%d\n", total);
  return 0;
}
