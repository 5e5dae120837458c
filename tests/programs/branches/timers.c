/* A timer that interrupts straight code, loops, string instructions, system calls and its own handler; some handlers leave by
   siglongjmp. The program ends after so many signals, given as argument. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t count;
static volatile sig_atomic_t inside;
static volatile sig_atomic_t may_leave;
static sigjmp_buf out;
static char bytes[40000];

static void on_alarm(int number) {
  (void)number;
  ++count;
  if (count % 3 == 0 && inside == 0) { /* is interrupted itself */
    inside = 1;
    sigset_t alarm;
    sigemptyset(&alarm);
    sigaddset(&alarm, SIGALRM);
    sigprocmask(SIG_UNBLOCK, &alarm, NULL);
    const int before = count;
    while (count == before) {
    }
    inside = 0;
  }
  if (count % 4 == 0 && may_leave != 0 && inside == 0) siglongjmp(out, 1);
}

static unsigned work(unsigned x) {
  for (int i = 0; i < 200; ++i) {
    x = x * 1664525U + 1013904223U;
    if ((x & 64) != 0) x ^= x >> 7;
  }
  return x;
}

int main(int argc, char** argv) {
  const int wanted = argc > 1 ? atoi(argv[1]) : 20;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_alarm;
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval timer = {{0, 3000}, {0, 3000}};
  setitimer(ITIMER_REAL, &timer, NULL);
  volatile unsigned x = 1;
  sigsetjmp(out, 1);
  may_leave = 1;
  while (count < wanted) {
    x = work(x);
    char* to = bytes;
    long size = sizeof bytes / 16;
    __asm__ volatile("rep stosb" : "+D"(to), "+c"(size) : "a"(x) : "memory");
    if (x % 8 == 0) getppid();
  }
  may_leave = 0;
  inside = 1; /* a signal that is still pending must not wait for a next one */
  const struct itimerval none = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &none, NULL);
  puts("done");
  return 0;
}
