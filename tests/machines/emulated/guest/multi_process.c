/* A program with threads, a child, and another program that the child executes: multi_process [PROGRAM...]. */
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 3
#define ROUNDS 200

__attribute__((noinline)) unsigned int work(unsigned int number) {
  unsigned int steps = 0;

  while (number != 1 && steps < 200) {
    number = number % 2 ? 3 * number + 1 : number / 2;
    ++steps;
  }
  return steps;
}

static void* toil(void* first) {
  static volatile unsigned int sum;

  for (unsigned int i = 1; i <= ROUNDS; ++i) {
    sum += work(i + (unsigned int)(unsigned long)first);
    if (i % 20 == 0) sched_yield();
  }
  return NULL;
}

int main(int count, char** arguments) {
  pthread_t threads[THREADS];
  const pid_t child = fork();

  if (child == 0) {
    toil((void*)1000);
    if (count > 1) execv(arguments[1], arguments + 1);
    _exit(count > 1 ? 127 : 0);
  }
  for (unsigned long i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, toil, (void*)(i * ROUNDS));
  for (unsigned long i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  waitpid(child, NULL, 0);
  printf("done\n");
  return 0;
}
