// Functions that are always inlined, and count their executions. Writes the counts to the file that is named.
#include <cstdio>

#define INLINED inline __attribute__((always_inline))
#define APART __attribute__((noinline))

volatile unsigned sink, both_count;

// Inlined in one function, and called by another one.
inline unsigned both(unsigned x) {
  ++both_count;
  return x ^ sink;
}

namespace {

volatile unsigned leaf_count, middle_count, outer_count, calling_count, step_count, looping_count,
    throwing_count, catching_count, called_count;

INLINED unsigned leaf(unsigned x) {
  ++leaf_count;
  sink = x;
  return x * 3 + 1;
}

INLINED unsigned middle(unsigned x) {
  ++middle_count;
  const unsigned first = leaf(x);
  ++sink;
  return first + leaf(x + 1);
}

INLINED unsigned outer(unsigned x) {
  ++outer_count;
  return middle(x) ^ sink;
}

APART unsigned called(unsigned x) {
  ++called_count;
  return x + sink;
}

INLINED unsigned calling(unsigned x) {
  ++calling_count;
  const unsigned found = called(x);
  ++sink;
  return leaf(found);
}

APART unsigned recursive(unsigned n);

INLINED unsigned step(unsigned n) {
  ++step_count;
  if (n == 0) return sink;
  return recursive(n - 1) + leaf(n);
}

APART unsigned recursive(unsigned n) {
  const unsigned found = step(n);
  ++sink;
  return found;
}

APART unsigned in_loop(unsigned n) {
  unsigned sum = 0;
  for (unsigned i = 0; i < n; ++i) {
    ++sink;
    sum += outer(i);
    ++sink;
  }
  return sum;
}

INLINED unsigned looping(unsigned n) {
  ++looping_count;
  unsigned sum = 0;
  for (unsigned i = 0; i < n; ++i) sum += called(i);
  return sum;
}

APART unsigned loops(unsigned n) {
  unsigned sum = 0;
  for (unsigned i = 0; i < n; ++i) {
    ++sink;
    sum += looping(i);
    ++sink;
  }
  return sum;
}

APART void fail(unsigned x) {
  ++sink;
  if (x % 3 == 0) throw x;
}

INLINED void throwing(unsigned x) {
  ++throwing_count;
  fail(x);
  ++sink;
}

INLINED unsigned catching(unsigned x) {
  ++catching_count;
  unsigned caught = 0;
  try {
    throwing(x);
  } catch (unsigned found) {
    caught = found + 1;
    ++sink;
  }
  ++sink;
  return caught;
}

APART unsigned catches(unsigned n) {
  unsigned sum = 0;
  for (unsigned i = 0; i < n; ++i) {
    ++sink;
    sum += catching(i);
    ++sink;
  }
  return sum;
}

APART unsigned calls_both(unsigned (*function)(unsigned), unsigned n) {
  unsigned sum = 0;
  for (unsigned i = 0; i < n; ++i) sum += function(i);
  return sum;
}

APART unsigned inlines_both(unsigned n) {
  unsigned sum = 0;
  for (unsigned i = 0; i < n; ++i) {
    ++sink;
    sum += both(i);
    ++sink;
  }
  return sum;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return 1;
  const auto n = 5 * static_cast<unsigned>(argc);
  unsigned sum = in_loop(n) + recursive(n) + loops(n) + catches(n) + inlines_both(n);
  ++sink;
  sum += calling(sum);
  ++sink;
  sum += calls_both(both, n);
  sink = sum;
  std::FILE* const out = std::fopen(argv[1], "w");
  if (out == nullptr) return 1;
  std::fprintf(out, "leaf %u\nmiddle %u\nouter %u\ncalling %u\nstep %u\n", leaf_count, middle_count,
               outer_count, calling_count, step_count);
  std::fprintf(out, "looping %u\nthrowing %u\ncatching %u\ncalled %u\nboth %u\n", looping_count,
               throwing_count, catching_count, called_count, both_count);
  return std::fclose(out);
}
