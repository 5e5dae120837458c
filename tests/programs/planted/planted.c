// Runs that part at one line, for a reason of their own each: argument 1 says which. What differs between two runs is
// standard input, an environment variable (INPUT), a file, a limit or a signal, so that no other line tests it.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <langinfo.h>
#include <limits.h>
#include <locale.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline)) static

static volatile int sum;

NOINLINE void one_way(void) {
  sum += 1;
}

NOINLINE void other_way(void) {
  sum -= 1;
}

NOINLINE int input_byte(void) {
  char text[4] = {0};
  if (read(0, text, sizeof text) < 0)
    return 2;
  if (text[1] == 'x')  // PARTS input_byte
    one_way();
  else
    other_way();
  return 0;
}

NOINLINE int allocation(void) {
  size_t size = strtoull(getenv("INPUT"), NULL, 10);
  char* volatile memory = malloc(size);
  if (memory == NULL)  // PARTS allocation
    return 1;
  one_way();
  return 0;
}

static void handle(int number) {
  sum += number;
}

NOINLINE int signalled(void) {
  signal(SIGUSR1, handle);
  int number = (getenv("INPUT")[0] - '0') * SIGUSR1;  // 0: no signal
  one_way();
  kill(getpid(), number);  // PARTS signalled
  other_way();
  return 0;
}

NOINLINE int fault(void) {
  struct sigaction action = {.sa_handler = _exit};
  sigaction(SIGSEGV, &action, NULL);
  int rights = atoi(getenv("INPUT"));
  char* page = mmap(NULL, 4096, rights, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  one_way();
  *(volatile char*)page = 1;  // PARTS fault
  other_way();
  return 0;
}

NOINLINE int environment(void) {
  const char* mode = getenv("INPUT");
  if (mode[0] == 'f')  // PARTS environment
    one_way();
  other_way();
  return 0;
}

NOINLINE int missing_file(void) {
  FILE* file = fopen("input.txt", "r");
  if (file == NULL)  // PARTS missing_file
    return 1;
  fclose(file);
  return 0;
}

NOINLINE int short_read(void) {
  char buffer[64];
  ssize_t got = read(0, buffer, sizeof buffer);
  if (got < (ssize_t)sizeof buffer)  // PARTS short_read
    other_way();
  one_way();
  return 0;
}

// The handler is in the C library, so that the program itself parts at the line that looks at the error.
NOINLINE int interrupted(void) {
  struct sigaction action = {.sa_handler = (void (*)(int))(uintptr_t)abs};
  sigaction(SIGALRM, &action, NULL);
  struct itimerval timer = {.it_value = {.tv_usec = 300000}};
  setitimer(ITIMER_REAL, &timer, NULL);
  char byte;
  ssize_t got = read(0, &byte, 1);
  if (got < 0)  // PARTS interrupted
    other_way();
  one_way();
  return 0;
}

NOINLINE int locale(void) {
  setlocale(LC_ALL, "");
  if (MB_CUR_MAX > 1)  // PARTS locale
    other_way();
  one_way();
  return 0;
}

NOINLINE int timeout(void) {
  struct pollfd input = {.fd = 0, .events = POLLIN};
  if (poll(&input, 1, 50) == 0)  // PARTS timeout
    other_way();
  one_way();
  return 0;
}

NOINLINE int overflow(void) {
  int value = atoi(getenv("INPUT"));
  int result;
  if (__builtin_add_overflow(value, INT_MAX - 5, &result))  // PARTS overflow
    other_way();
  else
    one_way();
  sum = result;
  return 0;
}

static jmp_buf outside;

NOINLINE void deep(int depth, int value) {
  if (depth > 0) {
    deep(depth - 1, value);
    one_way();
  } else if (value == 7) {  // PARTS jump_out
    longjmp(outside, 1);
  }
}

NOINLINE int jump_out(void) {
  int value = atoi(getenv("INPUT"));
  if (setjmp(outside) == 0)
    deep(4, value);
  else
    other_way();
  return 0;
}

NOINLINE int options(int count, char** arguments) {
  int option = getopt(count, arguments, "abcdv");
  while (option != -1) {
    switch (option) {  // PARTS options
      case 'a':
        one_way();
        break;
      case 'b':
        sum = 7;
        other_way();
        break;
      default:
        return 3;
    }
    option = getopt(count, arguments, "abcdv");
  }
  return 0;
}

NOINLINE int loop(void) {
  int rounds = atoi(getenv("INPUT"));
  for (int i = 0; i < rounds; ++i)  // PARTS loop
    one_way();
  other_way();
  return 0;
}

NOINLINE int descend(int depth) {
  if (depth == 0)  // PARTS recursion
    return 0;
  int below = descend(depth - 1);
  one_way();
  return below + 1;
}

NOINLINE int recursion(void) {
  sum += descend(atoi(getenv("INPUT")));
  return 0;
}

NOINLINE int jump_table(void) {
  int number = atoi(getenv("INPUT"));
  switch (number) {  // PARTS jump_table
    case 0:
      sum = 5;
      break;
    case 1:
      one_way();
      break;
    case 2:
      sum -= 3;
      one_way();
      break;
    case 3:
      other_way();
      break;
    case 4:
      sum *= 3;
      break;
    case 5:
      other_way();
      sum = 8;
      break;
    case 6:
      sum ^= 9;
      break;
    default:
      sum = 1;
  }
  one_way();
  return 0;
}

static void (*const ways[])(void) = {one_way, other_way};

NOINLINE int pointer(void) {
  int number = atoi(getenv("INPUT"));
  ways[number & 1]();  // PARTS pointer
  one_way();
  return 0;
}

NOINLINE int floating(void) {
  double value = strtod(getenv("INPUT"), NULL);
  if (value < 0.1 + 0.2)  // PARTS floating
    one_way();
  other_way();
  return 0;
}

NOINLINE int early_return(void) {
  struct timespec now = {.tv_sec = atoi(getenv("INPUT"))};
  if (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &now, NULL) != 0)  // PARTS early_return
    return 1;
  one_way();
  return 0;
}

NOINLINE int limit(void) {
  struct rlimit most = {.rlim_cur = (rlim_t)atoi(getenv("INPUT")), .rlim_max = 64};
  setrlimit(RLIMIT_NOFILE, &most);
  int file = open("/dev/null", O_RDONLY);
  if (file < 0)  // PARTS limit
    return 1;
  close(file);
  return 0;
}

int main(int count, char** arguments) {
  const char* kind = count > 1 ? arguments[1] : "";
  one_way();
  if (strcmp(kind, "options") == 0)
    return options(count - 1, arguments + 1);
  static const struct {
    const char* name;
    int (*run)(void);
  } cases[] = {
    {"input_byte", input_byte},     {"allocation", allocation},   {"signalled", signalled},
    {"fault", fault},               {"environment", environment}, {"missing_file", missing_file},
    {"short_read", short_read},     {"interrupted", interrupted}, {"locale", locale},
    {"timeout", timeout},           {"overflow", overflow},       {"jump_out", jump_out},
    {"loop", loop},                 {"recursion", recursion},     {"jump_table", jump_table},
    {"pointer", pointer},           {"floating", floating},       {"limit", limit},
    {"early_return", early_return},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i)
    if (strcmp(kind, cases[i].name) == 0)
      return cases[i].run();
  return 4;
}
