/* Children in all ways: posix_spawn, vfork and execve, fork in a thread, a child's child, an exec that fails, an exec of itself
   from a thread, a child that is killed, and one that outlives its parent. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;
static char* self;

static int status_of(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) {
  }
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static int spawn(const char* what) {
  pid_t child = 0;
  char* argv[] = {self, (char*)what, NULL};
  return posix_spawn(&child, self, NULL, NULL, argv, environ) == 0 ? status_of(child) : -1;
}

static void* fork_in_thread(void* result) {
  const pid_t child = fork();
  if (child == 0) _exit(spawn("leaf") + 1);
  *(int*)result = status_of(child);
  return NULL;
}

static void* exec_in_thread(void* unused) {
  (void)unused;
  execl(self, self, "leaf", (char*)NULL);
  return NULL;
}

int main(int argc, char** argv) {
  self = argv[0];
  if (argc > 1 && strcmp(argv[1], "leaf") == 0) return 11;
  if (argc > 1 && strcmp(argv[1], "thread") == 0) {
    pthread_t thread;
    pthread_create(&thread, NULL, exec_in_thread, NULL);
    pthread_join(thread, NULL);
    return 99;
  }
  int results[6] = {0};
  pthread_t thread;
  results[0] = spawn("leaf");
  pthread_create(&thread, NULL, fork_in_thread, &results[1]);
  pthread_join(thread, NULL);
  pid_t child = vfork();
  if (child == 0) {
    execl("/no/such/program", "x", (char*)NULL);
    execle(self, self, "leaf", (char*)NULL, environ);
    _exit(98);
  }
  results[2] = status_of(child);
  results[3] = spawn("thread");
  child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  kill(child, SIGKILL);
  results[4] = status_of(child);
  child = fork();
  if (child == 0) {
    if (fork() == 0) {
      usleep(20000);
      _exit(spawn("leaf"));
    }
    _exit(7);
  }
  results[5] = status_of(child);
  for (int i = 0; i < 6; ++i) printf("%d ", results[i]);
  puts("");
  return 0;
}
