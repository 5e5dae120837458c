/* Coroutines by setjmp() and longjmp(): each begins on its own stack in a signal's handler, which returns; then they
   jump to each other, or to main() (TURNS each). Each stack lies in 4 MiB of its own. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>

#define APART __attribute__((noinline, noclone, noipa))

enum { kCoroutines = 3, kTurns = 12, kStackBytes = 1 << 16, kApart = 4 << 20 };

static sigjmp_buf home, contexts[kCoroutines];
static volatile int making, current;
static volatile unsigned long bodies, works, yields, resumes, handled;

APART static void yield(void) {
  ++yields;
  const int own = current;
#ifdef RING
  const int next = (own + 1) % kCoroutines;
  if (__sigsetjmp(contexts[own], 0) == 0) {
    current = next;
    siglongjmp(contexts[next], 1);
  }
#else
  if (__sigsetjmp(contexts[own], 0) == 0) siglongjmp(home, 1);
#endif
}

APART static void work(int depth) {
  ++works;
  if (depth > 0) {
    work(depth - 1);
  } else {
    yield();
  }
}

APART static void body(int which) {
  ++bodies;
  for (int turn = 0; turn < kTurns; ++turn) {
    work((which + turn) % 3);
    __asm__ volatile("");
  }
  siglongjmp(home, 2);
}

static void begin(int number) {
  ++handled;
  (void)number;
  const int which = making;
  if (__sigsetjmp(contexts[which], 0) != 0) body(which);
}

APART static int resume(int which) {
  ++resumes;
  current = which;
  const int why = __sigsetjmp(home, 0);
  if (why == 0) siglongjmp(contexts[which], 1);
  return why;
}

static void make(int which) {
  char* const memory =
      mmap(NULL, kApart, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  const stack_t stack = {.ss_sp = memory + kApart / 2, .ss_size = kStackBytes};
  sigaltstack(&stack, NULL);
  making = which;
  raise(SIGUSR1);
}

int main(void) {
  struct sigaction action = {.sa_handler = begin, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &action, NULL);
  for (int i = 0; i < kCoroutines; ++i) make(i);
#ifdef RING
  resume(0);
#else
  for (int left = kCoroutines; left > 0;) {
    static int done[kCoroutines];
    for (int i = 0; i < kCoroutines; ++i) {
      if (done[i] || resume(i) != 2) continue;
      done[i] = 1;
      --left;
    }
  }
#endif
  printf("body %lu work %lu yield %lu resume %lu begin %lu\n", bodies, works, yields, resumes, handled);
  return 0;
}
