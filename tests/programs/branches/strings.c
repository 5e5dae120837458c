/* String instructions with REP, REPE and REPNE: no, one and many iterations, both directions, all sizes; twice in a row, and as
   the target of jumps. */
#include <stdio.h>
#include <string.h>

static char from[4096];
static char to[4096];
static long sum;

#define STRING(name, insn)                                                                                   \
  static void name(long count, int back) {                                                                   \
    char* s = from + (back ? 2048 : 8);                                                                      \
    char* d = to + (back ? 2048 : 8);                                                                        \
    if (back) __asm__ volatile("std" : : : "cc");                                                            \
    __asm__ volatile(insn : "+S"(s), "+D"(d), "+c"(count) : "a"(5L) : "memory", "cc");                       \
    __asm__ volatile("cld" : : : "cc");                                                                      \
    sum += count + (s - from) + (d - to);                                                                    \
  }

STRING(movsb, "rep movsb")
STRING(movsw, "rep movsw")
STRING(movsl, "rep movsl")
STRING(movsq, "rep movsq")
STRING(stosb, "rep stosb")
STRING(stosq, "rep stosq")
STRING(lodsb, "push %%rax\n rep lodsb\n pop %%rax")
STRING(cmpsb, "repe cmpsb")
STRING(cmpsq, "repe cmpsq")
STRING(scasb, "repne scasb")
STRING(scasl, "repe scasl")
STRING(twice, "rep movsb\n mov $3, %%ecx\n rep movsb\n rep movsb\n rep stosb")
STRING(target, "jmp 2f\n 1: mov $2, %%ecx\n 2: rep stosb\n add $-1, %%eax\n cmp $3, %%eax\n ja 1b\n mov $5, %%eax")
STRING(single, "movsb\n stosb\n lodsb\n mov $5, %%eax")

static void (*const kAll[])(long, int) = {movsb, movsw, movsl, movsq, stosb,  stosq,  lodsb,
                                          cmpsb, cmpsq, scasb, scasl, twice, target, single};

int main(void) {
  const long counts[] = {0, 1, 2, 3, 17, 200};
  for (unsigned i = 0; i < sizeof kAll / sizeof *kAll; ++i) {
    for (unsigned n = 0; n < sizeof counts / sizeof *counts; ++n) {
      memset(from, (int)i, sizeof from);
      memset(to, (int)i, sizeof to);
      to[12] = 5;
      kAll[i](counts[n], 0);
      kAll[i](counts[n], 1);
    }
  }
  printf("%ld\n", sum);
  return 0;
}
