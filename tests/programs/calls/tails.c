/* Tail calls: two functions that end in calls of each other, calls through a pointer, conditional jumps to
   functions, chains of four. Build with -O2. Prints the number of calls of each function, as it counted them
   itself. */
#include <stdio.h>

#define APART __attribute__((noinline, noclone, noipa))

volatile unsigned long evens, odds, links, ends;

APART unsigned odd(unsigned n);
APART unsigned even(unsigned n) {
  ++evens;
  return n == 0 ? 1 : odd(n - 1);
}
APART unsigned odd(unsigned n) {
  ++odds;
  return n == 0 ? 0 : even(n - 1);
}

APART unsigned end(unsigned n) {
  ++ends;
  return n + 1;
}
APART unsigned third(unsigned n) {
  ++links;
  return end(n + 1);
}
APART unsigned second(unsigned n) {
  ++links;
  return third(n + 2);
}
/* It has a frame of its own until it is left. */
APART unsigned first(unsigned n) {
  volatile char room[64];
  room[n % 64] = (char)n;
  ++links;
  const unsigned more = end((unsigned)room[n % 64]);
  return second(more);
}

unsigned (*volatile const by_pointer[])(unsigned) = {end, third, second};
APART unsigned through(unsigned n) {
  ++links;
  return by_pointer[n % 3](n);
}

/* Compilers seldom make a conditional jump to a function. */
unsigned conditional(unsigned n);
__asm__(
    ".text\n.globl conditional\n.type conditional, @function\nconditional:\n"
    "  incq links(%rip)\n  cmp $3, %edi\n  jb end\n  je third\n  cmp $5, %edi\n  ja second\n"
    "  lea (%rdi,%rdi), %eax\n  ret\n.size conditional, .-conditional\n");

int main(void) {
  unsigned sum = 0;
  for (unsigned i = 0; i < 8; ++i) sum += even(i) + odd(5 * i) + first(i) + through(i) + conditional(i);
  printf("even %lu odd %lu links %lu end %lu\n", evens, odds, links, ends);
  return sum == 0;
}
