// Evaluates numbers, of which each 100th one throws.
#include <cstdio>
#include <cstdlib>
#include <stdexcept>

namespace calc {

enum { EVERY = 100 };

[[gnu::noinline]] int checked(int number) {
  if (number % EVERY == EVERY - 1) throw std::domain_error("not this one");
  return number;
}

[[gnu::noinline]] int evaluate(int number) {
  int sum = 0;
  for (int i = 0; i < number % 7; ++i) sum += i;
  try {
    return sum + checked(number);
  } catch (const std::domain_error&) {
    return -1;
  }
}

}  // namespace calc

int main(int argc, char** argv) {
  const int numbers = argc > 1 ? std::atoi(argv[1]) : 500;
  int sum = 0;
  for (int i = 0; i < numbers; ++i) sum += calc::evaluate(i);
  std::printf("%d\n", sum);
  return 0;
}
