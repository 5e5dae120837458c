/* Recursion with one call site, with two, and with two functions that call each other. Prints the number of
   calls of each function, as it counted them itself. */
#include <stdio.h>

#define APART __attribute__((noinline, noclone, noipa))

static volatile unsigned long ones, twos, evens, odds;

APART unsigned one(unsigned n) {
  ++ones;
  return n == 0 ? 1 : n * one(n - 1) + 1;
}

APART unsigned two(unsigned n) {
  ++twos;
  return n < 2 ? n : two(n - 1) + two(n - 2);
}

APART unsigned odd(unsigned n);
APART unsigned even(unsigned n) {
  ++evens;
  return n == 0 ? 1 : odd(n - 1) ^ 2;
}
APART unsigned odd(unsigned n) {
  ++odds;
  return n == 0 ? 0 : even(n - 1) ^ 4;
}

int main(void) {
  unsigned sum = 0;
  for (unsigned i = 0; i < 5; ++i) sum += one(10 * i) + two(6 + i) + even(7 + i);
  printf("one %lu two %lu even %lu odd %lu\n", ones, twos, evens, odds);
  return sum == 0;
}
