/* Code that changes code: an instruction ahead of it in the same straight line, its own loop, another page, many functions at one
   address (a small compiler), code that is unmapped and mapped again, and one of two mappings of the same page. */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static uint8_t* code;

typedef int (*Function)(int);

static uint8_t* put(uint8_t* at, const void* bytes, size_t size) { return (uint8_t*)memcpy(at, bytes, size) + size; }

/* Straight code that writes the immediate of an instruction behind it: mov [rip+d], dil; nops; mov eax, imm32; ret */
static void straight(uint8_t* at, int nops) {
  at = put(at, "\x40\x88\x3d", 3); /* mov %dil, d(%rip) */
  const int32_t distance = nops + 1;
  at = put(at, &distance, 4);
  for (int i = 0; i < nops; ++i) *at++ = 0x90;
  put(at, "\xb8\0\0\0\0\xc3", 6);
}

/* A loop that counts its own immediate up: 1: incb d(%rip); add $imm8, %eax; dec %edi; jnz 1b; ret */
static void counting(uint8_t* at) {
  at = put(at, "\x31\xc0", 2);                 /* xor %eax, %eax */
  at = put(at, "\xfe\x05\x02\0\0\0", 6);       /* incb the byte after the next two */
  at = put(at, "\x83\xc0\0", 3);               /* add $0, %eax */
  put(at, "\xff\xcf\x75\xf3\xc3", 5);          /* dec %edi; jnz to incb; ret */
}

/* Compiles f(x) = ((x + a) * b) ^ c with branches in it. */
static Function compile(uint8_t* at, int a, int b, int c) {
  uint8_t* const begin = at;
  at = put(at, "\x8d\x87", 2); /* lea a(%rdi), %eax */
  at = put(at, &a, 4);
  at = put(at, "\x69\xc0", 2); /* imul $b, %eax, %eax */
  at = put(at, &b, 4);
  if (c % 2 != 0) at = put(at, "\xa8\x01\x74\x02\xff\xc0", 6); /* test $1, %al; je +2; inc %eax */
  at = put(at, "\x35", 1);                                     /* xor $c, %eax */
  at = put(at, &c, 4);
  *at = 0xc3;
  return (Function)begin;
}

int main(void) {
  long sum = 0;
  code = mmap(NULL, 16384, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  for (int nops = 0; nops < 12; nops += 3) {
    straight(code, nops);
    for (int i = 0; i < 4; ++i) sum += ((Function)code)(i * 3 + nops);
  }
  counting(code + 256);
  sum += ((Function)(code + 256))(30);
  straight(code + 4096 - 9, 5); /* over the border of pages */
  for (int i = 0; i < 5; ++i) sum += ((Function)(code + 4096 - 9))(i);

  for (int i = 0; i < 60; ++i) sum += compile(code + 8192 + 16 * (i % 2), i, 3, i % 7)(i * 5);

  for (int i = 0; i < 4; ++i) {
    uint8_t* const again = mmap(code + 12288, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    sum += compile(again, i, i + 1, 2 * i + 1)(i);
    munmap(again, 4096);
  }

  const int file = memfd_create("code", 0);
  if (file >= 0 && ftruncate(file, 4096) == 0) {
    uint8_t* const write = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    for (int i = 0; i < 3; ++i) {
      compile(write, i, 7, 1);
      void* const run = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
      sum += ((Function)run)(i);
      munmap(run, 4096);
    }
  }
  printf("%ld\n", sum);
  return 0;
}
