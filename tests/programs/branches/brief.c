/* A program that ends soon: without a C library it executes some dozen instructions, so that single steps
   record it at once. brief exit STATUS | signal NUMBER | word | loop COUNT; further words are ignored. `word`
   reads a word, and writes "got " and the word to standard output, "bad" to standard error. Build: -static
   -nostdlib. */
#include <sys/syscall.h>

static volatile int sum;

static long call(long number, long first, long second, long third) {
  long result;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(first), "S"(second), "d"(third)
                   : "rcx", "r11", "memory");
  return result;
}

__attribute__((noinline)) static long number_of(const char* digits) {
  long number = 0;
  for (; *digits != 0; ++digits) number = number * 10 + *digits - '0';
  return number;
}

__attribute__((noinline)) static long word(void) {
  char line[64];
  const long size = call(SYS_read, 0, (long)line, sizeof line);
  call(SYS_write, 1, (long)"got ", 4);
  call(SYS_write, 1, (long)line, size);
  call(SYS_write, 2, (long)"bad\n", 4);
  return 0;
}

__attribute__((noinline)) static long loop(long count) {
  for (long i = 0; i < count; ++i) sum += i % 3 == 0 ? 2 : 1;
  return 0;
}

/* argc, then the pointers of argv. */
__attribute__((used, noinline)) static long run(const long* stack) {
  if (stack[0] < 2) return 0;
  const char what = *(const char*)stack[2];
  const long number = stack[0] > 2 ? number_of((const char*)stack[3]) : 0;
  if (what == 's') return call(SYS_kill, call(SYS_getpid, 0, 0, 0), number, 0);
  if (what == 'w') return word();
  if (what == 'l') return loop(number);
  return number;
}

__asm__(
    ".globl _start\n_start:\n  mov %rsp, %rdi\n  call run\n  mov %rax, %rdi\n  mov $231, %eax\n  syscall\n");
