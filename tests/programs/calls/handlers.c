/* Signal handlers that return: one that another one interrupts, on a stack of its own, on that stack in the
   handler of another stack, two that are delivered at once, and a fault that is mended. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define APART __attribute__((noinline, noclone, noipa))

enum { kStackBytes = 1 << 16, kApart = 4 << 20 };

static volatile unsigned long plain, inner, alternate, mended;
static sigjmp_buf out;
static char* page;

APART static void count(volatile unsigned long* what) { ++*what; }

static void on_inner(int number) {
  (void)number;
  count(&inner);
}
static void on_plain(int number) {
  count(&plain);
  if (number == SIGUSR1) raise(SIGUSR2);
  count(&plain);
}
static void on_alternate(int number) {
  count(&alternate);
  raise(SIGUSR2);
  if (number == SIGTERM) siglongjmp(out, 1);
}
static void on_fault(int number) {
  (void)number;
  mprotect(page, 4096, PROT_READ | PROT_WRITE);
  count(&mended);
}

static void handle(int number, void (*handler)(int), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(number, &action, NULL);
}

APART static void store(void) { *(volatile char*)page = 1; }

APART static void both(void) {
  sigset_t set, old;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR1);
  sigaddset(&set, SIGINT);
  sigprocmask(SIG_BLOCK, &set, &old);
  raise(SIGUSR1);
  raise(SIGINT);
  sigprocmask(SIG_SETMASK, &old, NULL);
}

APART static int left(void) {
  if (sigsetjmp(out, 1) != 0) return 1;
  raise(SIGTERM);
  return 0;
}

int main(void) {
  stack_t stack;
  memset(&stack, 0, sizeof stack);
  char* const memory =
      mmap(NULL, kApart, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  stack.ss_sp = memory + kApart / 2;
  stack.ss_size = kStackBytes;
  sigaltstack(&stack, NULL);
  page = mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  handle(SIGUSR1, on_plain, 0);
  handle(SIGUSR2, on_inner, 0);
  handle(SIGINT, on_plain, 0);
  handle(SIGHUP, on_alternate, SA_ONSTACK);
  handle(SIGTERM, on_alternate, SA_ONSTACK);
  handle(SIGSEGV, on_fault, 0);
  int sum = 0;
  for (int i = 0; i < 3; ++i) {
    raise(SIGUSR1);
    raise(SIGHUP);
    sum += left();
    both();
    mprotect(page, 4096, PROT_NONE);
    store();
  }
  printf("plain %lu inner %lu alternate %lu mended %lu left %d\n", plain, inner, alternate, mended, sum);
  return 0;
}
