// Functions of just the name that others have in short, or as the last part of their names. Recordings keep
// code of some bytes around what was executed: functions that are not called lie far from others.
#define APART [[gnu::noinline, gnu::aligned(4096)]]

volatile long sum;

// Calls differ in length.
[[gnu::always_inline]] inline void work(int steps) {
  for (int i = 0; i < steps; ++i) sum = sum + i;
}

namespace pool {

struct Pool {
  APART void reset(int size) { work(size); }
};

APART void scan(char text) { work(text); }
APART void finish(char status) { work(status); }
APART void close(int file) { work(file); }

}  // namespace pool

extern "C" APART void scan(const char* text) { work(*text); }
APART void scan(int text) { work(text); }
APART void reset(char to) { work(to); }

APART void put(int value) { work(value); }
APART void put(char value) { work(value); }
APART void turn(int value) {
  put(value);
  put(static_cast<char>(value));
}

// Never called.
extern "C" [[gnu::used]] APART void reset(int to) { sum = to; }
extern "C" [[gnu::used]] APART void finish(int status) { sum = status; }

APART int main() {
  pool::Pool pool;
  for (char i = 0; i < 20; ++i) scan(&i);
  for (int i = 0; i < 30; ++i) scan(i);
  for (char i = 0; i < 40; ++i) pool::scan(i);
  for (char i = 0; i < 50; ++i) reset(i);
  for (int i = 0; i < 60; ++i) pool.reset(i);
  for (char i = 0; i < 70; ++i) pool::finish(i);
  for (int i = 0; i < 80; ++i) pool::close(i);
  for (int i = 0; i < 90; ++i) turn(i);
}
