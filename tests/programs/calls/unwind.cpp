// Exceptions: caught three frames up with destructors on the way, thrown again, thrown in recursion and
// caught at two depths, replaced by another one, through frames of C.
#include <cstdio>
#include <cstdlib>

#define APART __attribute__((noinline, noclone))

namespace {

volatile unsigned long destroyed, caught, thrown;

struct Counted {
  APART ~Counted() { ++destroyed; }
};

struct Problem {
  int depth;
};

APART int thrower(int depth) {
  ++thrown;
  throw Problem{depth};
}

APART int third(int n) {
  const Counted counted;
  return n % 2 == 0 ? thrower(n) + 1 : n;
}
APART int second(int n) {
  const Counted one;
  const Counted two;
  return third(n) + 1;
}
APART int first(int n) {
  try {
    return second(n) + 1;
  } catch (const Problem& problem) {
    ++caught;
    return problem.depth;
  }
}

APART int again(int n) {
  try {
    return second(n);
  } catch (...) {
    ++caught;
    throw;
  }
}
APART int rethrown(int n) {
  try {
    return again(n) + again(n + 2);
  } catch (const Problem& problem) {
    ++caught;
    return problem.depth + 10;
  }
}

// A frame at depth 0 throws; one at depth 2 and one at depth 5 catch, in one activation of the same function
// each.
APART int recursive(int depth, int until, int from) {
  const Counted counted;
  if (depth == from) return thrower(depth);
  if (depth != until) return recursive(depth + 1, until, from) + 1;
  try {
    return recursive(depth + 1, until, from) + 2;
  } catch (const Problem& problem) {
    ++caught;
    if (until == 2) return recursive(depth + 1, 5, from + 1) + problem.depth;
    return problem.depth;
  }
}

APART int other(int n) {
  try {
    return thrower(n);
  } catch (const Problem& problem) {
    throw problem.depth;
  }
}
APART int replaced(int n) {
  try {
    return other(n);
  } catch (int depth) {
    ++caught;
    return depth;
  }
}

APART int compare(const void* a, const void* b) {
  const Counted counted;
  if (*static_cast<const int*>(a) == 7) ++thrown, throw 7;
  return *static_cast<const int*>(a) - *static_cast<const int*>(b);
}
APART int through_c(int n) {
  int values[] = {7, 3, 5, n};
  try {
    std::qsort(values, 4, sizeof values[0], compare);
  } catch (int value) {
    ++caught;
    return value;
  }
  return 0;
}

}  // namespace

int main() {
  int sum = 0;
  for (int i = 0; i < 4; ++i)
    sum += first(i) + rethrown(2 * i) + recursive(0, 2, 8) + replaced(i) + through_c(i);
  std::printf("thrown %lu caught %lu destroyed %lu\n", thrown, caught, destroyed);
  return sum == 0;
}
