/* Loops and calls of known counts. Arguments: rounds (default 40). leaf() is called 100 times a round, odd() for
   every third number; by_value() is called by the C library only. Prints a sum, and how often by_value() was called. */
#include <stdio.h>
#include <stdlib.h>

static unsigned long compared;

__attribute__((noinline)) unsigned long leaf(unsigned long number) {
  return number * 3 + 1;
}

__attribute__((noinline)) unsigned long odd(unsigned long number) {
  return number ^ (number >> 3);
}

__attribute__((noinline)) unsigned long work(unsigned long round) {
  unsigned long sum = round;
  for (unsigned long i = 0; i < 100; ++i) {
    sum += leaf(i);
    if (i % 3 == 0) sum ^= odd(sum);
  }
  return sum;
}

int by_value(const void* a, const void* b) {
  const unsigned long first = *(const unsigned long*)a;
  const unsigned long second = *(const unsigned long*)b;
  ++compared;
  return first < second ? -1 : first > second;
}

int main(int argc, char** argv) {
  const unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : 40;
  unsigned long sums[64];
  for (unsigned long i = 0; i < 64; ++i) sums[i] = i;
  for (unsigned long i = 0; i < rounds; ++i) sums[i % 64] = work(i) % 1009;
  qsort(sums, 64, sizeof sums[0], by_value);
  printf("%lu %lu\n", sums[40], compared);
  return 0;
}
