/* Rounds of calls, for filters and triggers: rounds [COUNT] [SIGNAL_AT] [wait]. In each round `work` calls `leaf` three
   times and `other` once; in round SIGNAL_AT the program sends itself SIGUSR1. With `wait` it reads a line first, and with
   a COUNT of 0 it goes on until it gets SIGINT, whereupon it says how far it came. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static volatile sig_atomic_t interrupted;
static volatile int sink;

__attribute__((noinline, noclone)) int leaf(int n) { return n + 1 + sink; }
__attribute__((noinline, noclone)) int other(int n) { return n * 3 - sink; }
__attribute__((noinline, noclone)) int work(int n) {
  int sum = 0;
  for (int i = 0; i < 3; ++i) sum += leaf(n + i);
  return sum + other(n);
}
__attribute__((noinline, noclone)) int begin(void) { return sink; }
__attribute__((noinline, noclone)) int end(void) { return sink + 1; }
__attribute__((noinline, noclone)) void handler(int number) {
  if (number == SIGINT) interrupted = 1;
}

int main(int argc, char** argv) {
  const int count = argc > 1 ? atoi(argv[1]) : 10;
  const int signal_at = argc > 2 ? atoi(argv[2]) : -1;
  signal(SIGUSR1, handler);
  signal(SIGINT, handler);
  if (argc > 3 && strcmp(argv[3], "wait") == 0) {
    printf("ready\n");
    fflush(stdout);
    while (getchar() != '\n' && !feof(stdin)) continue;
  }
  begin();
  int round = 0;
  for (; !interrupted && (count == 0 || round < count); ++round) {
    if (round == signal_at) raise(SIGUSR1);
    sink = work(round) & 1;
  }
  end();
  printf("%d rounds\n", round);
  return 5;
}
