// Runs other code for each argument: "left", "right", both or none.
#include <string.h>

static volatile int sum;

__attribute__((noinline)) static void left(int rounds) {
  for (int i = 0; i < rounds; ++i) {
    sum += i;
  }
}

__attribute__((noinline)) static void right(int rounds) {
  if (rounds > 3)
    sum += rounds;
  else
    sum -= rounds;
}

__attribute__((noinline)) static void never(void) {
  sum = 0;
}

int main(int count, char** arguments) {
  for (int i = 1; i < count; ++i) {
    if (strcmp(arguments[i], "left") == 0)
      left(5);
    else if (strcmp(arguments[i], "right") == 0)
      right(i);
    else
      never();
  }
  return 0;
}
