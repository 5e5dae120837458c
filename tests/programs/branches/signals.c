/* Signals: sent to itself, while it sleeps, by a fault that a handler mends, nested, ignored, and a breakpoint. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <unistd.h>

static volatile sig_atomic_t count;
static char* page;
static sigjmp_buf out;

static void on_usr1(int number) {
  (void)number;
  ++count;
  raise(SIGUSR2);
}
static void on_usr2(int number) { count += number != 0; }
static void on_segv(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)context;
  if (info->si_addr == page) {
    mprotect(page, 4096, PROT_READ | PROT_WRITE); /* and the store is tried again */
    ++count;
  } else {
    siglongjmp(out, 1);
  }
}

static void handle(int number, void (*handler)(int), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(number, &action, NULL);
}

int main(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_segv;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGSEGV, &action, NULL);
  handle(SIGUSR1, on_usr1, 0);
  handle(SIGUSR2, on_usr2, 0);
  handle(SIGALRM, on_usr2, SA_RESTART);
  handle(SIGTRAP, on_usr2, 0);
  signal(SIGWINCH, SIG_IGN);

  /* First: a step that ends while SIGTRAP is blocked, as raise() does for a while, resets its handler. */
  __asm__ volatile("int3");
  for (int i = 0; i < 3; ++i) raise(SIGUSR1);
  raise(SIGWINCH);

  page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  *(volatile char*)page = 1;
  if (sigsetjmp(out, 1) == 0) *(volatile char*)8 = 1;

  /* A read that a handler interrupts and the kernel repeats. */
  int ends[2];
  char byte = 0;
  if (pipe(ends) != 0) return 1;
  struct itimerval timer;
  memset(&timer, 0, sizeof timer);
  timer.it_value.tv_usec = 20000;
  if (fork() == 0) {
    usleep(100000);
    return write(ends[1], "x", 1) != 1;
  }
  setitimer(ITIMER_REAL, &timer, NULL);
  if (read(ends[0], &byte, 1) != 1) return 2;
  usleep(1000);
  printf("%d %c\n", (int)count, byte);
  return 0;
}
