/* Lines with several blocks, loops and calls, for counts of source lines. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define BOTH(a, b) ((a) > 3 && (b) < 9)

static unsigned recursive(unsigned n) { return n < 2 ? n : recursive(n - 1) + recursive(n - 2); }

static unsigned twice(unsigned n) { return n * 2; }

static unsigned on_one_line(unsigned n) {
  unsigned sum = 0;
  for (unsigned i = 0; i < n; ++i) sum += twice(twice(i));
  while (n-- > 0) sum ^= n;
  do sum += 3; while (sum % 7 != 0);
  return sum;
}

static unsigned on_many_lines(unsigned n) {
  unsigned sum = 0;
  for (unsigned i = 0;
       i < n;
       ++i) {
    if (i % 3 == 0) {
      sum += twice(i);
    } else if (BOTH(i, n - i)) {
      sum += recursive(i % 9);
    } else {
      sum -= i & 1 ? 1 : 5;
    }
  }
  return sum;
}

static unsigned chosen(unsigned n) {
  unsigned sum = 0;
  for (unsigned i = 0; i < n; ++i) {
    switch (i % 5) {
      case 0:
        sum += 1;
        break;
      case 1: sum += 2;
      /* fall through */
      case 2:
        sum += 3;
        if (sum % 2 == 0) continue;
        break;
      default:
        sum += 4;
    }
    if (sum > 4000) goto out;
  }
out:
  return sum;
}

static int by_value(const void* a, const void* b) {
  const unsigned x = *(const unsigned*)a, y = *(const unsigned*)b;
  return x < y ? -1 : x > y;
}

static unsigned sorted(unsigned n) {
  unsigned values[64];
  for (unsigned i = 0; i < n; ++i)
    values[i] = i * 2654435761U;
  qsort(values, n, sizeof *values, by_value);
  return values[n / 2];
}

int main(void) {
  unsigned sum = 0;
  for (unsigned i = 0; i < 20; ++i) {
    sum += on_one_line(i) + on_many_lines(i);
    sum += chosen(10 * i);
  }
  sum += sorted(64);
  printf("%u %zu\n", sum, strlen("text"));
  return 0;
}
