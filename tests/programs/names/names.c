/* Names of threads: one names itself by pthread_setname_np, one is named by another thread, one by writing to its comm file, one
   keeps the name of the program. Then the process names itself, and becomes the program that is its argument. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static pthread_barrier_t named;
static volatile unsigned sink;

static void work(void) {
  for (unsigned i = 0; i < 20000; ++i) sink += i % 7 == 0 ? i : 1;
}

static void* by_itself(void* unused) {
  (void)unused;
  work();
  pthread_setname_np(pthread_self(), "by-itself");
  work();
  pthread_barrier_wait(&named);
  return NULL;
}

static void* by_another(void* unused) {
  (void)unused;
  pthread_barrier_wait(&named);
  work();
  return NULL;
}

static void* by_file(void* unused) {
  (void)unused;
  char path[64];
  snprintf(path, sizeof path, "/proc/%d/task/%ld/comm", getpid(), syscall(SYS_gettid));
  const int file = open(path, O_WRONLY);
  if (file >= 0 && write(file, "by-file", 7) == 7) close(file);
  work();
  pthread_barrier_wait(&named);
  return NULL;
}

int main(int argc, char** argv) {
  pthread_t threads[4];
  void* (*const bodies[])(void*) = {by_itself, by_another, by_file, by_another};
  pthread_barrier_init(&named, NULL, 5);
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, bodies[i], NULL);
  pthread_setname_np(threads[1], "by-another");
  pthread_barrier_wait(&named);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  prctl(PR_SET_NAME, "before-exec");
  work();
  if (argc > 1) execv(argv[1], argv + 1);
  return 0;
}
