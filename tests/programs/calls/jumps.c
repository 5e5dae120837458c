/* longjmp over three frames, in recursion, to a caller of a caller, again and again to one setjmp, and out of
 * signal handlers. */
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#define APART __attribute__((noinline, noclone, noipa))

static jmp_buf outer, targets[4];
static sigjmp_buf handled;
static volatile unsigned long left, returned;

APART void leaver(int value) {
  ++left;
  longjmp(outer, value + 1);
}
APART int third(int n) {
  if (n % 2 == 0) leaver(n);
  ++returned;
  return n;
}
APART int second(int n) { return third(n) + 1; }
APART int first(int n) {
  if (setjmp(outer) != 0) return n;
  return second(n) + 1;
}

/* Each second level calls setjmp; the innermost jumps to one of them. */
APART int recursive(int depth, int target) {
  if (depth == 8) {
    ++left;
    longjmp(targets[target], 1);
  }
  if (depth % 2 == 0 && setjmp(targets[depth / 2]) != 0) return depth;
  const int below = recursive(depth + 1, target);
  ++returned;
  return below + 1;
}

APART int retried(void) {
  volatile int tries = 0;
  if (setjmp(outer) < 5) {
    ++tries;
    leaver(tries);
  }
  return tries;
}

static void on_signal(int number) {
  ++left;
  siglongjmp(handled, number);
}
APART void raised(int number) { raise(number); }
APART int out_of_handler(int number) {
  if (sigsetjmp(handled, 1) != 0) return number;
  raised(number);
  return 0;
}

int main(void) {
  int sum = 0;
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = on_signal;
  sigaction(SIGUSR1, &action, NULL);
  for (int i = 0; i < 4; ++i) {
    sum += first(i) + recursive(0, i) + retried();
    sum += out_of_handler(SIGUSR1);
  }
  printf("left %lu returned %lu\n", left, returned);
  return sum == 0;
}
