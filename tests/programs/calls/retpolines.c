/* Indirect calls and jumps that a call and a return make up, within functions: build with
   -mindirect-branch=thunk-inline, -mindirect-branch-register, -mfunction-return=thunk-inline and
   -fjump-tables. Forms that other compilers and people write are in assembler. Prints the number of calls of
   each function. */
#include <stdio.h>
#include <stdlib.h>

#define APART __attribute__((noinline, noclone, noipa))

typedef unsigned Function(unsigned);
struct operations {
  Function* first;
  Function* second;
};

static volatile unsigned long leaves, nodes, passes, switches, directs;

APART unsigned leaf(unsigned n) {
  ++leaves;
  return n + 1;
}
APART unsigned node(unsigned n);
APART unsigned pass(unsigned n);
static const struct operations* volatile operations;

/* Calls and a recursion through pointers in memory. */
APART unsigned node(unsigned n) {
  ++nodes;
  return n < 2 ? n : operations->first(n - 1) + operations->second(n - 2);
}
/* Ends in a jump at -O2. */
APART unsigned pass(unsigned n) {
  ++passes;
  return operations->first(n / 2);
}
/* The first instruction is a jump through a register at -O2. */
APART unsigned direct(Function* function) { return function(3); }

/* A jump table. */
APART unsigned choose(unsigned n) {
  ++switches;
  switch (n % 8) {
    case 0: return leaf(n);
    case 1: return node(n % 4);
    case 2: return n * 3;
    case 3: return n ^ 5;
    case 4: return pass(n % 4);
    case 5: return n + 9;
    case 6: return leaf(n) * leaf(n + 1);
    default: return n / 3;
  }
}

#ifdef __x86_64__
/* Within their functions: a call as clang's thunk branches, over INT3; one of which the target is pushed; a
   jump by LFENCE. */
unsigned by_register(unsigned, Function*);
unsigned by_trap(unsigned, Function*);
unsigned by_push(unsigned, Function*);
unsigned by_jump(unsigned, Function*);
__asm__(
    ".text\n.type by_register, @function\nby_register:\n  push %rbx\n  mov %rsi, %r11\n  call 1f\n"
    "  add $1, %eax\n  pop %rbx\n  ret\n"
    "1: call 3f\n2: pause\n  lfence\n  jmp 2b\n  .p2align 4, 0xcc\n3: mov %r11, (%rsp)\n  ret\n"
    ".size by_register, .-by_register\n"
    ".type by_trap, @function\nby_trap:\n  sub $8, %rsp\n  jmp 2f\n1: call 3f\n  int3\n"
    "3: mov %rsi, (%rsp)\n  ret\n  int3\n2: call 1b\n  add $8, %rsp\n  ret\n.size by_trap, .-by_trap\n"
    ".type by_push, @function\nby_push:\n  sub $8, %rsp\n  jmp 2f\n1: push %rsi\n  call 3f\n4: lfence\n"
    "  jmp 4b\n3: lea 8(%rsp), %rsp\n  ret\n2: call 1b\n  add $8, %rsp\n  ret\n.size by_push, .-by_push\n"
    ".type by_jump, @function\nby_jump:\n  mov %rdi, %rax\n  add $2, %rdi\n  call 3f\n4: pause\n  jmp 4b\n"
    "3: xchg %rsi, (%rsp)\n  ret\n.size by_jump, .-by_jump\n");
static unsigned by_hand(unsigned n) {
  return by_register(n, leaf) + by_trap(n % 4, node) + by_push(n, leaf) + by_jump(n % 4, pass);
}
#else
static unsigned by_hand(unsigned n) { return n; }
#endif

int main(void) {
  static const struct operations both[2] = {{leaf, node}, {node, leaf}};
  unsigned sum = 0;
  for (unsigned i = 0; i < 40; ++i) {
    operations = &both[i % 2];
    sum += operations->first(i % 8) + operations->second(i % 8) + pass(i % 8) + choose(i) + by_hand(i);
    sum += direct(i % 3 == 0 ? leaf : pass);
    sum += (unsigned)abs((int)sum);
    ++directs;
  }
  printf("leaf %lu node %lu pass %lu choose %lu direct %lu\n", leaves, nodes, passes, switches, directs);
  return sum == 0;
}
