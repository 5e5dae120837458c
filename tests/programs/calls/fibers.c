/* Fibers that switch stacks by hand: a scheduler resumes each, or each resumes the next one (RING). FORM says how a
   stack is left: by RET (0), by JMP to the address that was popped (1), by XCHG and RET (2), or within the function
   that yields (3). Each stack lies in 4 MiB of its own. */
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

#define APART __attribute__((noinline, noclone, noipa))

#ifndef FORM
#define FORM 0
#endif
#ifndef FIBERS
#define FIBERS 8
#endif
#ifndef ROUNDS
#define ROUNDS 20
#endif

enum { kStackBytes = 1 << 16, kApart = 4 << 20, kRegisters = 6 };

struct fiber {
  void* sp;
  int id, done;
};

static struct fiber fibers[FIBERS];
static void* home;
static int current, left = FIBERS;
static volatile unsigned long entries, outers, inners, leaves, yields, resumes, steps;

#define PUSH_ALL "push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
#define POP_ALL "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n"

/* Keeps the stack pointer in *from, and goes on with the stack `to`. */
void swap_stack(void** from, void* to);
#if FORM == 1
__asm__(".text\n.globl swap_stack\n.type swap_stack,@function\nswap_stack:\n" PUSH_ALL
        "mov %rsp,(%rdi)\n mov %rsi,%rsp\n" POP_ALL "pop %r8\n jmp *%r8\n.size swap_stack,.-swap_stack\n");
#elif FORM == 2
__asm__(".text\n.globl swap_stack\n.type swap_stack,@function\nswap_stack:\n" PUSH_ALL
        "xchg %rsi,%rsp\n mov %rsi,(%rdi)\n" POP_ALL "ret\n.size swap_stack,.-swap_stack\n");
#else
__asm__(".text\n.globl swap_stack\n.type swap_stack,@function\nswap_stack:\n" PUSH_ALL
        "mov %rsp,(%rdi)\n mov %rsi,%rsp\n" POP_ALL "ret\n.size swap_stack,.-swap_stack\n");
#endif

/* Switches stacks within the function that contains it, which continues after it. */
#define SWAP_HERE(FROM, TO)                                                                                    \
  void** keep_ = (FROM);                                                                                       \
  void* take_ = (TO);                                                                                          \
  __asm__ volatile(                                                                                            \
      "lea 1f(%%rip),%%rax\n push %%rbp\n push %%rbx\n push %%rax\n mov %%rsp,(%%rdi)\n mov %%rsi,%%rsp\n"     \
      "pop %%rax\n pop %%rbx\n pop %%rbp\n jmp *%%rax\n1:\n"                                                  \
      : "+D"(keep_), "+S"(take_)                                                                               \
      :                                                                                                        \
      : "rax", "rcx", "rdx", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15", "memory")

APART static void leaf(int n) {
  ++leaves;
  for (int i = 0; i < n; ++i) ++steps;
}

#ifdef RING
static int next_of(int id) {
  for (int i = 1; i <= FIBERS; ++i) {
    if (!fibers[(id + i) % FIBERS].done) return (id + i) % FIBERS;
  }
  return -1;
}
#endif

APART static void yield_now(void) {
  ++yields;
  struct fiber* const from = &fibers[current];
#ifdef RING
  const int next = next_of(current);
  if (next >= 0) current = next;
  void* const to = next < 0 ? home : fibers[next].sp;
  if (next >= 0 && from == &fibers[next]) return;
#else
  void* const to = home;
#endif
#if FORM == 3
  SWAP_HERE(&from->sp, to);
#else
  swap_stack(&from->sp, to);
#endif
}

APART static void inner(int id, int depth) {
  ++inners;
  leaf(10 + id);
  if (depth > 0) {
    inner(id, depth - 1);
  } else {
    yield_now();
  }
  leaf(5);
}

APART static void outer(int id) {
  ++outers;
  for (int round = 0; round < ROUNDS; ++round) {
#ifdef DEPTHS
    inner(id, (id + round) % DEPTHS);
#else
    inner(id, 0);
#endif
    __asm__ volatile("");
  }
}

static void entry(void) {
  const int id = current;
  ++entries;
  outer(id);
  fibers[id].done = 1;
  --left;
  for (;;) yield_now();
}

static void make(int id) {
  char* const memory =
      mmap(NULL, kApart, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  void** sp = (void**)(memory + kApart / 2 + kStackBytes - 8);
  *--sp = 0;
#if FORM == 3
  *--sp = 0;
  *--sp = 0;
  *--sp = (void*)entry;
#else
  *--sp = (void*)entry;
  sp -= kRegisters;
  memset(sp, 0, kRegisters * sizeof *sp);
#endif
  fibers[id].sp = sp;
  fibers[id].id = id;
}

APART static void resume(int id) {
  ++resumes;
  current = id;
#if FORM == 3
  SWAP_HERE(&home, fibers[id].sp);
#else
  swap_stack(&home, fibers[id].sp);
#endif
  __asm__ volatile("");
}

int main(void) {
  for (int id = 0; id < FIBERS; ++id) make(id);
#ifdef RING
  resume(0);
#else
  while (left) {
    for (int id = 0; id < FIBERS; ++id) {
      if (!fibers[id].done) resume(id);
    }
  }
#endif
  printf("entry %lu outer %lu inner %lu yield_now %lu resume %lu leaf %lu\n", entries, outers, inners, yields,
         resumes, leaves);
  return 0;
}
