// Handles requests that usually take one of two lengths. Each 100th one is slow.
#include <stdio.h>
#include <stdlib.h>

enum { EVERY = 100, HEAVY = 2000 };

static volatile long sink;

__attribute__((noinline)) void heavy(void) {
  for (int i = 0; i < HEAVY; ++i) sink += i;
}

__attribute__((noinline)) void request(int number) {
  for (int i = 0; i < 10 + number % 2; ++i) sink += i;
  if (number % EVERY == EVERY - 1) heavy();
}

int main(int argc, char** argv) {
  const int requests = argc > 1 ? atoi(argv[1]) : 500;
  for (int i = 0; i < requests; ++i) request(i);
  printf("%ld\n", sink);
  return 0;
}
