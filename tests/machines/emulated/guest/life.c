/*
 * Events that a recorder has to learn of while it records: a thread with a name, and a child that names
 * itself, maps code and runs it, makes memory executable, and ends as another program, with status 7.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PAGE 4096

extern const char __ehdr_start[]; /* of the linker: offset 0 of this file */

/* Without references to other code or data, so that it runs anywhere. */
__attribute__((noinline)) static unsigned int work(unsigned int number) {
  unsigned int steps = 0;

  while (number != 1 && steps < 200) {
    number = number % 2 ? 3 * number + 1 : number / 2;
    ++steps;
  }
  return steps;
}

static void* toil(void* result) {
  prctl(PR_SET_NAME, "worker");
  *(unsigned int*)result = work(27);
  return NULL;
}

/* Calls work() where this file is mapped once more. */
static unsigned int work_elsewhere(unsigned int number) {
  const uintptr_t offset = (uintptr_t)work - (uintptr_t)__ehdr_start;
  const int file = open("/proc/self/exe", O_RDONLY);
  char* code = mmap(NULL, 2 * PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE, file, (off_t)(offset / PAGE * PAGE));

  return code == MAP_FAILED ? 0 : ((unsigned int (*)(unsigned int))(code + offset % PAGE))(number);
}

static void be_child(void) {
  void* memory = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  prctl(PR_SET_NAME, "renamed");
  if (mprotect(memory, PAGE, PROT_READ | PROT_EXEC) != 0 || work_elsewhere(27) != work(27)) _exit(98);
  execl("/bin/busybox", "sh", "-c", "exit 7", NULL);
  _exit(99);
}

int main(void) {
  pthread_t thread;
  unsigned int steps = 0;
  int status = 0;
  const pid_t child = fork();

  if (child == 0) be_child();
  pthread_create(&thread, NULL, toil, &steps);
  pthread_join(thread, NULL);
  waitpid(child, &status, 0);
  return WIFEXITED(status) && steps == work(27) ? WEXITSTATUS(status) : 97;
}
