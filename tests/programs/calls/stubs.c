/* Functions of the C library through the PLT, again and again, one of them an IFUNC, one that calls back.
   Bound lazily
   (-Wl,-z,lazy) or at start (-Wl,-z,now). */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define APART __attribute__((noinline, noclone, noipa))

static volatile unsigned long compared;

APART int compare(const void* a, const void* b) {
  ++compared;
  return *(const int*)a - *(const int*)b;
}

APART long words(const char* text) {
  char copy[64];
  strcpy(copy, text);
  for (char* at = copy; *at != 0; ++at) *at = (char)toupper((unsigned char)*at);
  return strtol(copy, NULL, 16) + (long)strlen(copy);
}

APART int sorted(unsigned seed) {
  int values[8];
  srand(seed);
  for (int i = 0; i < 8; ++i) values[i] = rand() % 100;
  qsort(values, 8, sizeof values[0], compare);
  return values[0] + abs(values[7]);
}

/* A tail call of a function in another file: a jump to its stub. */
APART void freed(void* memory) { free(memory); }

int main(void) {
  long sum = 0;
  for (unsigned i = 0; i < 4; ++i) {
    sum += words("1f") + words("abcdef") + sorted(i);
    freed(malloc(100 * (i + 1)));
  }
  printf("compare %lu\n", compared);
  return sum == 0;
}
