// Programs that fail in some runs: exit status 1. The outcome is no argument's, but that of time or of the kernel's random bytes.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <time.h>
#include <unistd.h>

static volatile int updates;
static int* volatile table;
static volatile int tables;

// Waits for a time that the clock decides, as a disk or a network would.
__attribute__((noinline)) static void wait_for_input(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  usleep((unsigned)(now.tv_nsec / 1000 % 6000));
}

__attribute__((noinline)) static int* make_table(void) {
  int* made = calloc(64, sizeof *made);
  usleep(2000);
  __atomic_fetch_add(&tables, 1, __ATOMIC_SEQ_CST);
  return made;
}

static void* use_table(void* argument) {
  wait_for_input();
  if (table == NULL)  // RACE: two threads may come here before one of them has made the table
    table = make_table();
  table[(intptr_t)argument] = 1;
  return NULL;
}

__attribute__((noinline)) static int parse(int value) {
  usleep(3000);
  return value + 1;
}

static void* update(void* argument) {
  wait_for_input();
  int value = updates;
  value = parse(value);  // LOST: another thread may load or store meanwhile
  updates = value;
  return argument;
}

static int run_threads(void* (*body)(void*)) {
  pthread_t threads[2];
  for (intptr_t i = 0; i < 2; ++i)
    pthread_create(&threads[i], NULL, body, (void*)i);
  for (int i = 0; i < 2; ++i)
    pthread_join(threads[i], NULL);
  return 0;
}

// A hash with a seed that each process gets from the kernel, against chosen keys.
__attribute__((noinline)) static unsigned hash_of(const char* key) {
  const unsigned char* random = (const unsigned char*)getauxval(AT_RANDOM);
  unsigned hash = random[0];
  while (*key != 0)
    hash = (hash ^ (unsigned char)*key++) * 16777619;
  return hash >> 7;
}

static volatile int width, height;

static int by_hash(void) {
  if (hash_of("width") % 8 < hash_of("height") % 8) {  // SEED: the order of a map's entries decides
    width = 3;
    height = 2 * width;
  } else {
    height = 2 * width;
    width = 3;
  }
  return height == 0;
}

// The heap has what was there before: here a key of random bytes.
__attribute__((noinline)) static void leave_behind(void) {
  unsigned char* key = malloc(64);
  if (key != NULL)
    memcpy(key + 32, (const void*)getauxval(AT_RANDOM), 16);
  __asm__ volatile("" : : "r"(key) : "memory");
  free(key);
}

__attribute__((noinline)) static int read_unset(void) {
  unsigned char* options = malloc(64);
  __asm__ volatile("" : "+r"(options));
  options[0] = 1;
  int verbose = options[40] & 1;
  if (verbose != 0) {  // UNSET: nothing was written there
    free(options);
    return 1;
  }
  free(options);
  return 0;
}

static int report(int failed) {
  if (failed)
    fputs("failed\n", stderr);
  return failed;
}

int main(int count, char** arguments) {
  const char* kind = count > 1 ? arguments[1] : "";
  if (strcmp(kind, "race") == 0) {
    run_threads(use_table);
    return report(tables != 1);
  }
  if (strcmp(kind, "lost") == 0) {
    run_threads(update);
    return report(updates != 2);
  }
  if (strcmp(kind, "seed") == 0)
    return report(by_hash());
  leave_behind();
  return report(read_unset());
}
