/* Faults in the middle of straight code: mended and tried again, stepped over by the handler, left by siglongjmp, nested, on a
   stack of their own; by loads, stores, divisions, undefined instructions, breakpoints, REP, and jumps to where no code is. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>

static char* page;
static sigjmp_buf out;
static volatile int count;
static volatile int nested;
static volatile enum { MEND, SKIP, LEAVE, NEST } what;
static volatile int skipped; /* bytes of the instruction that SKIP passes over */

static void on_fault(int number, siginfo_t* info, void* context) {
  ucontext_t* const user = context;
  (void)info;
  ++count;
  switch (what) {
    case MEND: mprotect(page, 8192, PROT_READ | PROT_WRITE); return;
    case SKIP: user->uc_mcontext.gregs[REG_RIP] += skipped; return;
    case NEST:
      what = LEAVE;
      if (sigsetjmp(out, 1) == 0) {
        *(volatile int*)16 = number;
      } else {
        ++nested;
      }
      what = MEND;
      mprotect(page, 8192, PROT_READ | PROT_WRITE);
      return;
    default: siglongjmp(out, 1);
  }
}

static void protect(void) { mprotect(page, 8192, PROT_NONE); }

/* The third of five instructions stores. */
static long store(char* at) {
  long result;
  __asm__ volatile("mov $7, %%eax\n lea 1(%%rax), %%rcx\n mov %%cl, (%1)\n add %%rcx, %%rax\n mov %%rax, %0\n"
                   : "=r"(result)
                   : "r"(at)
                   : "rax", "rcx", "cc", "memory");
  return result;
}

static void divide(void) {
  __asm__ volatile("mov $9, %%eax\n xor %%edx, %%edx\n xor %%ecx, %%ecx\n inc %%edx\n div %%ecx\n inc %%eax\n"
                   :
                   :
                   : "rax", "rcx", "rdx", "cc");
}

static void undefined(void) { __asm__ volatile("nop\n ud2\n nop\n"); }
static void breakpoint(void) { __asm__ volatile("nop\n int3\n nop\n"); }

static void repeat(char* to, long bytes) {
  __asm__ volatile("nop\n rep stosb\n nop\n" : "+D"(to), "+c"(bytes) : "a"(3) : "memory");
}

static void handle(int number) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(number, &action, NULL);
}

int main(void) {
  const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP};
  const stack_t stack = {.ss_sp = malloc(65536), .ss_size = 65536};
  volatile long sum = 0;
  sigaltstack(&stack, NULL);
  for (unsigned i = 0; i < sizeof numbers / sizeof *numbers; ++i) handle(numbers[i]);
  page = mmap(NULL, 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  for (volatile int i = 0; i < 3; ++i) {
    what = MEND;
    protect();
    sum += store(page + i);
    what = NEST;
    protect();
    sum += store(page + i);
    what = LEAVE;
    protect();
    if (sigsetjmp(out, 1) == 0) sum += store(page + 4096);
  }
  what = LEAVE;
  if (sigsetjmp(out, 1) == 0) divide();
  if (sigsetjmp(out, 1) == 0) undefined();
  what = SKIP;
  skipped = 2; /* div, ud2 */
  divide();
  undefined();
  skipped = 0; /* a breakpoint is reported behind it */
  breakpoint();

  what = MEND; /* in the middle of its iterations */
  protect();
  mprotect(page, 4096, PROT_READ | PROT_WRITE);
  repeat(page + 4090, 12);
  what = LEAVE;
  protect();
  mprotect(page, 4096, PROT_READ | PROT_WRITE);
  if (sigsetjmp(out, 1) == 0) repeat(page + 4090, 12);

  if (sigsetjmp(out, 1) == 0) ((void (*)(void))(page + 64))();
  if (sigsetjmp(out, 1) == 0) {
    __asm__ volatile("push $24\n ret\n" : : : "memory");
  }
  if (sigsetjmp(out, 1) == 0) {
    __asm__ volatile("xor %%eax, %%eax\n nop\n call *8(%%rax)\n" : : : "rax", "memory");
  }
  mprotect(page, 8192, PROT_READ);
  printf("%ld %d %d %d\n", sum, count, nested, page[4095]);
  return 0;
}
