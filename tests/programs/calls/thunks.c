/* How position-independent code finds its own address (call to the next instruction, or a function that
   returns its return address), calls that jump into the middle of code, and returns that leave by the address
   of an outer call. */
#include <stdio.h>

#define APART __attribute__((noinline, noclone, noipa))

static volatile unsigned long nexts, thunks;

unsigned long get_pc(void);
unsigned long next_pc(void);
void two_levels(void);
unsigned pushed(unsigned);
__asm__(
    ".text\n.type get_pc, @function\nget_pc:\n  mov (%rsp), %rax\n  ret\n.size get_pc, .-get_pc\n"
    ".type next_pc, @function\nnext_pc:\n  call 1f\n1: pop %rax\n  ret\n.size next_pc, .-next_pc\n"
    /* The inner call's return address is thrown away: its RET is the outer function's. */
    ".type dropper, @function\ndropper:\n  add $8, %rsp\n  ret\n.size dropper, .-dropper\n"
    ".type two_levels, @function\ntwo_levels:\n  call dropper\n  ud2\n.size two_levels, .-two_levels\n"
    /* A RET that is an indirect jump to a function. */
    ".type pushed, @function\npushed:\n  lea landing(%rip), %rax\n  push %rax\n  ret\n.size pushed, "
    ".-pushed\n"
    ".type landing, @function\nlanding:\n  lea 3(%rdi), %eax\n  ret\n.size landing, .-landing\n");

APART unsigned long by_next(void) {
  ++nexts;
  return next_pc() != 0;
}
APART unsigned long by_thunk(void) {
  ++thunks;
  return get_pc() != 0;
}
APART unsigned around(unsigned n) {
  two_levels();
  return pushed(n) + 1;
}

int main(void) {
  unsigned long sum = 0;
  for (unsigned i = 0; i < 5; ++i) sum += by_next() + by_thunk() + around(i);
  printf("by_next %lu by_thunk %lu\n", nexts, thunks);
  return sum == 0;
}
