/* Children that are killed while they execute short blocks that end in every kind of branch, and system calls. */
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 24
#define CALLS 16

/* Without end: a jump, a call, a return, an indirect jump, a conditional jump. The red zone is left alone. */
static void __attribute__((noreturn)) work(void) {
  for (;;) {
    for (unsigned i = 0; i < CALLS; ++i)
      __asm__ volatile(
          "sub $128, %%rsp\n jmp 1f\n"
          "1: call 2f\n jmp 3f\n"
          "2: ret\n"
          "3: lea 4f(%%rip), %%rax\n jmp *%%rax\n"
          "4: test $1, %%ecx\n jnz 5f\n nop\n"
          "5: add $128, %%rsp\n"
          :
          : "c"(i)
          : "rax", "cc", "memory");
    syscall(SYS_getppid);
  }
}

static int killed(int wait_us) {
  int ready[2], status = 0;
  char byte = 0;
  if (pipe(ready) != 0) return 0;
  const pid_t child = fork();
  if (child == 0) {
    if (write(ready[1], &byte, 1) == 1) work();
    _exit(1);
  }
  close(ready[1]);
  const int began = read(ready[0], &byte, 1) == 1;
  close(ready[0]);
  usleep(wait_us);
  kill(child, SIGKILL);
  while (waitpid(child, &status, 0) < 0) {
  }
  return began && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
}

int main(void) {
  int ended = 0;
  for (int i = 0; i < CHILDREN; ++i) ended += killed(500 + 37 * i);
  return ended == CHILDREN ? 0 : 1;
}
