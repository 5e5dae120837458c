/* Coroutines with stacks (ucontext): two that take turns with main() at different depths, one that ends, one
   that is never resumed. Each stack lies in 4 MiB of its own. */
#include <stdio.h>
#include <sys/mman.h>
#include <ucontext.h>

#define APART __attribute__((noinline, noclone, noipa))

enum { kCoroutines = 3, kTurns = 6, kStackBytes = 1 << 16, kApart = 4 << 20 };

static ucontext_t home, contexts[kCoroutines];
static int current;
static volatile unsigned long yields, steps;

APART static void yield(void) {
  ++yields;
  swapcontext(&contexts[current], &home);
}

APART static int descend(int depth) {
  ++steps;
  if (depth == 0) return 0;
  yield();
  const int below = descend(depth - 1) + 1;
  yield();
  return below;
}

static void run(int depth) {
  descend(depth);
  if (depth > 1) descend(depth - 1);
}

APART static void resume(int which) {
  current = which;
  swapcontext(&home, &contexts[which]);
}

static void make(int which) {
  ucontext_t* const one = &contexts[which];
  getcontext(one);
  char* const memory =
      mmap(NULL, kApart, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  one->uc_stack.ss_sp = memory + kApart / 2;
  one->uc_stack.ss_size = kStackBytes;
  one->uc_link = &home;
  makecontext(one, (void (*)(void))run, 1, which + 1);
}

int main(void) {
  for (int i = 0; i < kCoroutines; ++i) make(i);
  /* The first coroutine ends after its second yield, and is not resumed again. */
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int i = 0; i < kCoroutines; ++i) {
      if (i > 0 || turn < 3) resume(i);
    }
  }
  printf("yield %lu descend %lu\n", yields, steps);
  return 0;
}
