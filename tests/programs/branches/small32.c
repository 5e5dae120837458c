/* For -m32: system calls by int 0x80 and by the vDSO, calls, jumps through tables, floating point. */
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int seen;
static void handler(int number) { seen = number; }

int main(void) {
  int pid = 0;
  double x = 1.5;
  signal(SIGUSR1, handler);
  raise(SIGUSR1);
  __asm__ volatile("int $0x80" : "=a"(pid) : "a"(SYS_getpid) : "memory");
  for (int i = 0; i < 5; ++i) {
    switch (i) {
      case 0: x *= 2; break;
      case 1: x += 1; break;
      case 2: x /= 3; break;
      case 3: x -= 7; break;
      default: x = -x;
    }
  }
  printf("%d %d %.3f\n", seen == SIGUSR1, pid == getpid(), x);
  return 0;
}
