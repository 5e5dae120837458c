/* A library with one function. Two of them, with another TURN each, lie alike in memory and do something else. */
int step(int number);

int step(int number) {
  int sum = 0;

#if TURN
  for (int i = 0; i < 12 && number != 1; ++i) number = number % 2 ? 3 * number + 1 : number / 2;
#else
  for (int i = 0; i < 9; ++i) {
    if ((number ^ i) & 4) sum += i;
    if (i % 3 == number % 3) sum ^= number;
  }
#endif
  return sum + number;
}
