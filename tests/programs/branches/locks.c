/* Threads with LOCK instructions, aligned and across cache lines and pages, and 16 byte ones, in the middle of straight code. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>

static _Alignas(4096) char memory[8192];
static pthread_barrier_t barrier;

static void add(char* at, int times) {
  for (int i = 0; i < times; ++i) {
    __asm__ volatile("mov $1, %%eax\n nop\n lock addq $1, (%0)\n lock xaddl %%eax, (%1)\n inc %%eax\n nop\n"
                     :
                     : "r"(at), "r"(at + 96)
                     : "rax", "cc", "memory");
  }
}

static void wide(char* at) {
  __asm__ volatile(
      "xor %%eax, %%eax\n xor %%edx, %%edx\n xor %%ebx, %%ebx\n xor %%ecx, %%ecx\n"
      "lock cmpxchg16b (%0)\n nop\n xchg %%eax, 16(%0)\n"
      :
      : "r"(at)
      : "rax", "rbx", "rcx", "rdx", "cc", "memory");
}

static void* work(void* argument) {
  pthread_barrier_wait(&barrier);
  for (int i = 0; i < 10; ++i) {
    add(memory, 3);
    add(memory + 61, 2);
    add(memory + 4092, 2);
    wide(memory + 512);
  }
  return argument;
}

int main(void) {
  pthread_t threads[3];
  pthread_barrier_init(&barrier, NULL, 3);
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, work, NULL);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  int64_t counts[2];
  __builtin_memcpy(&counts[0], memory, 8);
  __builtin_memcpy(&counts[1], memory + 4092, 8);
  printf("%ld %ld\n", (long)counts[0], (long)counts[1]);
  return 0;
}
