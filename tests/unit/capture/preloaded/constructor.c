// A library whose constructor begins a thread, a child, a child that executes a program, and a child that
// returns to be the program as well. Whatever does not end as it should makes the program end with 99.
// Or, if PTKIT_TEST_WAIT names a FIFO, it waits there for a byte.
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void* run(void* ran) {
  *(int*)ran = 1;
  return ran;
}

static void expect(pid_t child, int wanted) {
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != wanted)
    _exit(99);
}

__attribute__((constructor)) static void begin(void) {
  const char* const fifo = getenv("PTKIT_TEST_WAIT");
  if (fifo != NULL) {
    char byte = 0;
    const int file = open(fifo, O_RDONLY | O_CLOEXEC);
    if (file < 0 || read(file, &byte, 1) != 1) _exit(99);
    close(file);
  }
  if (getenv("PTKIT_TEST_RETURNED") == NULL) return;
  unsetenv("LD_PRELOAD");
  int ran = 0;
  pthread_t thread;
  if (pthread_create(&thread, NULL, run, &ran) != 0 || pthread_join(thread, NULL) != 0 || ran != 1) _exit(99);
  pid_t child = fork();
  if (child == 0) _exit(4);
  expect(child, 4);
  child = vfork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", "exit 5", NULL);
    _exit(98);
  }
  expect(child, 5);
  child = fork();
  if (child != 0) expect(child, atoi(getenv("PTKIT_TEST_RETURNED")));
}
