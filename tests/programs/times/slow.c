// Handles requests. Each 1000th one walks a list that is ten times as long, and loads a page before.
#include <stdio.h>
#include <stdlib.h>

enum { SHORT = 8, LONG = 80, EVERY = 1000 };

struct node {
  struct node* next;
  unsigned value;
};

static struct node nodes[LONG];

__attribute__((noinline)) unsigned load_page(unsigned number) {
  unsigned sum = number;
  for (unsigned i = 0; i < 16; ++i) sum = sum * 31 + i;
  return sum;
}

__attribute__((noinline)) unsigned walk(const struct node* first, unsigned length) {
  unsigned sum = 0;
  for (unsigned i = 0; i < length; ++i) {
    sum += first->value;
    first = first->next;
  }
  return sum;
}

__attribute__((noinline)) unsigned handle(unsigned number) {
  if (number % EVERY == EVERY - 1) return load_page(number) + walk(nodes, LONG);
  return walk(nodes, SHORT) + 1;
}

int main(int argc, char** argv) {
  const unsigned requests = argc > 1 ? (unsigned)atoi(argv[1]) : 5000;
  unsigned sum = 0;
  for (unsigned i = 0; i < LONG; ++i) {
    nodes[i].value = i;
    nodes[i].next = &nodes[(i + 1) % LONG];
  }
  for (unsigned i = 0; i < requests; ++i) sum += handle(i);
  printf("%u\n", sum);
  return 0;
}
