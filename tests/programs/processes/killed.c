/* Ends by a signal. */
#include <stdlib.h>

int main(void) {
  volatile int x = 0;
  for (int i = 0; i < 100; ++i) x += i;
  *(volatile int*)4 = x;
  return 0;
}
