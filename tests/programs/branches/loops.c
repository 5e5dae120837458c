/* Loops and branches of which the counts are known: tests/python/analysis/test_branch_stats.py and test_loops.py
 * say which. No function of another file is called but from main(), at -O0. */
static volatile int sink;

/* Calls: 3. Visits: 1 of 7 rounds and the last test; 7 of i + 1 rounds. */
static void nested(void) {
  for (int i = 0; i < 7; ++i) {    /* outer */
    for (int j = 0; j <= i; ++j) { /* inner */
      sink += j;
    }
  }
}

/* 1 + 3 + 9 calls, each of which has its own visit of 3 rounds, but for the leaves, which have none. */
static void tree(int depth) {
  if (depth == 0) return;
  for (int i = 0; i < 3; ++i) { /* children */
    tree(depth - 1);
  }
}

/* By turns; in runs of 40; 5 in a row of 8. */
static void outcomes(void) {
  for (int i = 0; i < 80; ++i) {
    if (i & 1) ++sink; /* turns */
    if (i < 40) ++sink; /* halves */
    if (i % 8 < 5) ++sink; /* uneven */
  }
}

static int machine(const unsigned char* code) {
  int steps = 0;
  for (;; ++code) { /* dispatch */
    ++steps;
    switch (*code) { /* cases */
      case 0: sink += 1; break;
      case 1: sink += 2; break;
      case 2: sink -= 3; break;
      case 3: sink += 5; break;
      case 4: sink -= 7; break;
      case 5: sink += 11; break;
      case 6: sink -= 13; break;
      case 7: return steps;
    }
  }
}

static void add(int n) { sink += n; }
static void subtract(int n) { sink -= n; }
static void twice(int n) { sink += 2 * n; }
static void (*const functions[])(int) = {add, subtract, twice, add};

static void call_all(void) {
  for (int i = 0; i < 40; ++i) functions[i % 4](i); /* pointers */
}

static int search(int wanted) {
  int found = -1;
  for (int i = 0; i < 10; ++i) { /* search */
    if (i == wanted) { /* hit */
      found = i;
      break;
    }
  }
  return found;
}

int main(void) {
  static const unsigned char code[] = {0, 0, 0, 1, 0, 2, 3, 3, 4, 0, 5, 6, 0, 7};
  for (int i = 0; i < 3; ++i) nested();
  tree(3);
  outcomes();
  sink += machine(code);
  call_all();
  for (int i = 0; i < 12; ++i) sink += search(i); /* searches */
  return 0;
}
