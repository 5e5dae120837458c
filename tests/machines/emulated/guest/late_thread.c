/* A thread that lives long enough to be found while it runs. */
#include <pthread.h>
#include <unistd.h>

#define TURNS 30

static volatile unsigned sum;

static void* work(void* unused) {
  for (int turn = 0; turn < TURNS; turn++) {
    for (unsigned i = 0; i < 300; i++) sum += i % 3 == 0 ? i : 1;
    usleep(10000);
  }
  return unused;
}

int main(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, work, NULL) != 0) return 1;
  return pthread_join(thread, NULL);
}
