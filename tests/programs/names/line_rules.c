// Lines of which gcov's rule and the order of addresses say different things.
// clang-format off
#include <stdio.h>
#include <stdlib.h>

static unsigned
declared_above_its_brace(
    unsigned n,
    unsigned step)
{
  unsigned sum = 0;
  while (1) {
    if (n < step) break;
    n -= step;
    if (n % 3 == 0) {
      sum += n;
      continue;
    }
    if (n % 5 == 0) break;
    sum++;
  }
  return sum;
}

static int conditions_on_many_lines(int a, int b,
                                    int c) {
  if (a == 1 ||
      b == 2 ||
      (c > 3 && a + b > 4) ||
      b * c == 24)
    return a
           + b;
  return a < b
             ? c
             : a;
}

static unsigned added(unsigned a, unsigned b, unsigned c) { return a + b + c; }

static unsigned calls_on_many_lines(unsigned n) {
  unsigned sum = 0;
  for (unsigned i = 0;
       i < n;
       i++) {
    if (i == 7)
      continue;
    sum += added(
        i,
        added(i, 1, 2),
        sum);
    do
      sum += 1 + added(sum, 1, 1) % 3;
    while (sum % 4 != 0 &&
           sum < 1000);
  }
  return sum;
}

int main(void) {
  unsigned sum = 0;
  for (unsigned i = 0; i < 30; i++) sum += declared_above_its_brace(i * 7, 2 + i % 3);
  for (int i = 0; i < 60; i++)
    sum += (unsigned)conditions_on_many_lines(i % 3,
                                              i % 5,
                                              i % 7);
  sum += calls_on_many_lines(20);
  printf("%u\n", sum);
  return EXIT_SUCCESS;
}
