/* Calls of all kinds: recursion, tail calls, calls through the PLT with callbacks, longjmp() over frames. */
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline, noclone))

static jmp_buf out;
static volatile int sink;

APART int fib(int n) {
  if (n < 2) return n;
  int sum = fib(n - 1);
  sum += fib(n - 2);
  sink = sum;
  return sum;
}

APART int odd(int n);
APART int even(int n) {
  sink = n;
  return n == 0 ? 1 : odd(n - 1);
}
APART int odd(int n) {
  sink = n;
  return n == 0 ? 0 : even(n - 1);
}

APART int leave(int depth) {
  if (depth == 0) longjmp(out, 1);
  const int left = leave(depth - 1);
  sink = left;
  return left + 1;
}
APART int guarded(int depth) {
  if (setjmp(out) != 0) return depth;
  return leave(depth);
}

APART int smaller(const void* a, const void* b) { return *(const int*)a - *(const int*)b; }

APART int apply(int (*function)(int), int n) {
  sink = n;
  return function(n + 1);
}

int main(void) {
  int numbers[16];
  int sum = 0;
  for (int i = 0; i < 16; ++i) numbers[i] = (i * 7) % 16;
  for (int i = 0; i < 3; ++i) sum += fib(8);
  for (int i = 0; i < 4; ++i) sum += even(10);
  for (int i = 0; i < 5; ++i) sum += guarded(3);
  for (int i = 0; i < 6; ++i) sum += apply(fib, 2);
  qsort(numbers, 16, sizeof numbers[0], smaller);
  printf("%d %d\n", sum, numbers[3]);
  return 0;
}
