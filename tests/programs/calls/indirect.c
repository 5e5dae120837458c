/* Calls and tail calls through pointers, and jump tables. Build with -mindirect-branch=thunk (retpolines),
   with -mfunction-return=thunk (return thunks), with both, with neither. Prints the number of calls of each
   function. */
#include <stdio.h>

#define APART __attribute__((noinline, noclone, noipa))

static volatile unsigned long leaves, nodes, passes;

APART unsigned leaf(unsigned n) {
  ++leaves;
  return n + 1;
}
APART unsigned node(unsigned n);
APART unsigned pass(unsigned n);
static unsigned (*volatile const table[])(unsigned) = {leaf, node, pass};

APART unsigned node(unsigned n) {
  ++nodes;
  return n < 2 ? n : table[n % 3](n - 1) + table[(n + 1) % 3](n - 2);
}
/* Ends in a jump at -O2. */
APART unsigned pass(unsigned n) {
  ++passes;
  return table[n % 2](n / 2);
}

int main(void) {
  unsigned sum = 0;
  for (unsigned i = 0; i < 12; ++i) sum += table[i % 3](i);
  printf("leaf %lu node %lu pass %lu\n", leaves, nodes, passes);
  return sum == 0;
}
