/* Every kind of near branch: direct and indirect jumps and calls, returns that match their call and some that do not, REP
   instructions, conditional branches of all forms, deep recursion. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

static volatile int sink;

static int leaf(int x) { return x + 1; }
static int other(int x) { return x - 1; }
static int (*const kTable[])(int) = {leaf, other, leaf};

/* Deeper than any return stack of 64. */
static int __attribute__((noinline)) deep(int n) { return n == 0 ? 0 : 1 + deep(n - 1); }

static int dispatch(int n) {
  static void* const kLabels[] = {&&zero, &&one, &&two};
  int x = 0;
  for (int i = 0; i < n; ++i) {
    goto* kLabels[i % 3];
  zero:
    x += 1;
    continue;
  one:
    x += 2;
    continue;
  two:
    x ^= i;
  }
  return x;
}

static int choose(int x) {
  switch (x) {
    case 0: return 10;
    case 1: return 21;
    case 2: return 32;
    case 3: return 43;
    case 4: return 54;
    case 5: return 65;
    default: return -1;
  }
}

static void assembly(void) {
  __asm__ volatile(
      "mov $5, %%ecx\n"
      "1: nop\n"
      "loop 1b\n"
      "xor %%ecx, %%ecx\n"
      "jecxz 2f\n"
      "nop\n"
      "2: call 3f\n" /* a call to the next instruction */
      "3: add $8, %%rsp\n"
      "lea 4f(%%rip), %%rax\n"
      "push %%rax\n"
      "ret\n" /* a return without a call */
      "nop\n"
      "4: lea 5f(%%rip), %%rax\n"
      "jmp *%%rax\n"
      "5: pushf\n"
      "popf\n"
      "jmp 6f\n"
      "6: jz 7f\n"
      "7: nop\n"
      :
      :
      : "rax", "rcx", "cc", "memory");
}

int main(void) {
  char a[5000];
  char b[5000];
  jmp_buf here;
  memset(a, 7, sizeof a);
  __asm__ volatile("rep movsb" : : "D"(b), "S"(a), "c"(300L) : "memory");
  __asm__ volatile("rep stosb" : : "D"(b), "a"(1), "c"(0L) : "memory");
  for (int i = 0; i < 9; ++i) sink += kTable[i % 3](i) + choose(i);
  sink += deep(100) + dispatch(20);
  assembly();
  volatile int again = 0;
  if (setjmp(here) < 3) {
    ++again;
    longjmp(here, again);
  }
  printf("%d\n", sink);
  return 0;
}
