/* Branches that compilers seldom make: branches to the next instruction and to themselves, LOOP and JRCXZ of all kinds, jumps into the
   middle of an instruction, returns that match no call, calls whose return is thrown away, far more calls than a return stack holds,
   x87 and SSE loops, system calls one after the other, long straight code. Argument: how often. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile long sink;

static void next_instruction(void) {
  for (int i = 0; i < 4; ++i) {
    __asm__ volatile(
        "test $1, %0\n jz 1f\n 1: jnz 2f\n 2: jmp 3f\n 3: call 4f\n 4: pop %%rax\n lea 5f(%%rip), %%rax\n jmp *%%rax\n 5: nop\n"
        "lea 6f(%%rip), %%rax\n call *%%rax\n 6: pop %%rax\n lea 7f(%%rip), %%rax\n push %%rax\n ret\n 7: nop\n"
        :
        : "r"(i)
        : "rax", "cc", "memory");
  }
}

static void loops(void) {
  __asm__ volatile(
      "mov $3, %%ecx\n 1: loop 1b\n" /* to itself */
      "mov $4, %%ecx\n 2: cmp %%ecx, %%ecx\n loope 2b\n"
      "mov $4, %%ecx\n 3: cmp $2, %%ecx\n loopne 3b\n"
      "xor %%ecx, %%ecx\n jrcxz 4f\n ud2\n 4: jecxz 5f\n ud2\n 5: inc %%ecx\n jrcxz 6f\n nop\n 6: nop\n"
      :
      :
      : "rcx", "cc");
}

/* 05 90 90 eb 00: add $..., %eax; or from its second byte: nop; nop; jmp to the next instruction. */
static void middle(void) {
  for (int i = 0; i < 3; ++i) {
    __asm__ volatile(
        "lea 1f(%%rip), %%rcx\n add %0, %%rcx\n jmp *%%rcx\n 1: .byte 0x05, 0x90, 0x90, 0xeb, 0x00\n nop\n"
        :
        : "r"((long)i)
        : "rax", "rcx", "cc");
  }
}

static void unmatched(void) {
  __asm__ volatile(
      "call 1f\n nop\n jmp 3f\n"
      "1: pop %%rax\n push %%rax\n call 2f\n 2: add $8, %%rsp\n ret\n" /* returns to the outer call */
      "3: lea 4f(%%rip), %%rax\n push %%rax\n push %%rax\n call 5f\n jmp 6f\n"
      "5: ret\n 4: nop\n" /* 5 returns to its call */
      "6: add $16, %%rsp\n"
      :
      :
      : "rax", "cc", "memory");
}

static int __attribute__((noinline)) odd(int n);
static int __attribute__((noinline)) even(int n) { return n == 0 ? 1 : odd(n - 1) + (int)(sink & 0); }
static int __attribute__((noinline)) odd(int n) { return n == 0 ? 0 : even(n - 1) + (int)(sink & 0); }
/* Up and down around the depth of the return stack. */
static int __attribute__((noinline)) tree(int n) { return n <= 0 ? 1 : tree(n - 1) + (n % 16 == 0 ? tree(n - 15) : 0) + (int)(sink & 0); }

static double floating(void) {
  volatile long double x = 1;
  volatile double y = 1;
  volatile float z = 1;
  for (int i = 1; i < 50; ++i) {
    x = x * 1.5L / (i % 3 + 1);
    y += 1 / (y + i);
    z = z < 3 ? z * 2 : z / 3;
    if (x > y) x -= z;
  }
  return (double)x + y + (double)z;
}

static void straight(void) {
  __asm__ volatile(".rept 3000\n add $1, %%rax\n .endr" : : : "rax", "cc");
  __asm__ volatile("1: .fill 14, 1, 0x2e\n nop\n" : : : "cc"); /* fifteen bytes */
}

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? atoi(argv[1]) : 1;
  for (int i = 0; i < rounds; ++i) {
    next_instruction();
    loops();
    middle();
    unmatched();
    sink += even(300) + tree(100);
  }
  for (int i = 0; i < 200; ++i) sink += syscall(SYS_getppid) > 0;
  for (int i = 0; i < 20; ++i) sink += syscall(-1L) < 0;
  straight();
  const double result = floating();
  printf("%ld %.6f\n", sink, result);
  return 0;
}
