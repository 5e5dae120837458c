/* Makes functions while it runs, each turn another one where the last one was and one behind the others, and tells of
   them in jit-PID.dump with times of the TSC, and in /tmp/perf-PID.map: jitter [TURNS]. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <x86intrin.h>

#define BYTES 65536
#define SPACING 64

struct header {
  uint32_t magic, version, size, machine, padding, pid;
  uint64_t time, flags;
};
struct load {
  uint32_t id, size;
  uint64_t time;
  uint32_t pid, tid;
  uint64_t vma, address, bytes, index;
};

static FILE* dump;
static FILE* map;
static volatile int sink;

/* nop...; mov $COUNT, %eax; 1: dec %eax; [inc %edi;] jnz 1b; ret */
static size_t make(uint8_t* at, int turn) {
  uint8_t* const begin = at;
  const int count = 3 + turn % 4;

  for (int i = 0; i < turn % 5; ++i) *at++ = 0x90;
  *at++ = 0xb8;
  memcpy(at, &count, 4);
  at += 4;
  if (turn % 2 != 0) {
    memcpy(at, "\xff\xc7\xff\xc8\x75\xfa", 6);
    at += 6;
  } else {
    memcpy(at, "\xff\xc8\x75\xfc", 4);
    at += 4;
  }
  *at++ = 0xc3;
  return (size_t)(at - begin);
}

static void tell(const uint8_t* at, size_t bytes, uint64_t index) {
  char name[32];
  struct load load = {0, 0, __rdtsc(), (uint32_t)getpid(), (uint32_t)getpid(), (uintptr_t)at, (uintptr_t)at, bytes, index};

  snprintf(name, sizeof name, "made%u", (unsigned int)index);
  load.size = (uint32_t)(sizeof load + strlen(name) + 1 + bytes);
  fwrite(&load, sizeof load, 1, dump);
  fwrite(name, strlen(name) + 1, 1, dump);
  fwrite(at, bytes, 1, dump);
  fflush(dump);
  fprintf(map, "%lx %zx %s\n", (unsigned long)(uintptr_t)at, bytes, name);
}

static void use(uint8_t* at, int turn, uint64_t index) {
  tell(at, make(at, turn), index);
  for (int i = 0; i < 5; ++i) ((void (*)(void))at)();
}

int main(int count, char** arguments) {
  const int turns = count > 1 ? atoi(arguments[1]) : 40;
  const struct header header = {0x4A695444, 1, sizeof header, 62, 0, (uint32_t)getpid(), __rdtsc(), 1};
  char name[64];
  uint8_t* const code = mmap(NULL, BYTES, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

  snprintf(name, sizeof name, "/tmp/jit-%d.dump", (int)getpid());
  dump = fopen(name, "w+");
  snprintf(name, sizeof name, "/tmp/perf-%d.map", (int)getpid());
  map = fopen(name, "w");
  if (dump == NULL || map == NULL || turns * SPACING >= BYTES) return 1;
  fwrite(&header, sizeof header, 1, dump);
  fflush(dump);
  /* So that recordings tell of it. */
  if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(dump), 0) == MAP_FAILED) return 1;
  for (int turn = 0; turn < turns; ++turn) {
    use(code, turn, (uint64_t)turn * 2);
    use(code + SPACING * (turn + 1), turn, (uint64_t)turn * 2 + 1);
  }
  printf("%d\n", (int)getpid());
  return 0;
}
