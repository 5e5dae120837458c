// Overloads, instances of templates and lambdas: functions with equal short names.
#include <cstdio>

namespace store {

template <typename K, typename V>
struct Map {
  V slots[8] = {};
  [[gnu::noinline]] V& insert(K key, V value) {
    V& slot = slots[static_cast<int>(key) & 7];
    slot = value;
    return slot;
  }
  template <typename F>
  [[gnu::noinline]] long fold(F&& each) {
    long sum = 0;
    for (V slot : slots) sum = each(sum, slot);
    return sum;
  }
};

[[gnu::noinline]] long parse(int text) {
  volatile long steps = 0;
  for (int i = 0; i < text; ++i) steps = steps + i;
  return steps;
}
[[gnu::noinline]] long parse(char text) { return parse(static_cast<int>(text)); }

}  // namespace store

extern "C" [[gnu::used]] int insert(int value) { return value + 1; }  // never called

int main() {
  store::Map<int, long> numbers;
  store::Map<char, unsigned char> letters;
  for (int i = 0; i < 40; ++i) {
    numbers.insert(i, store::parse(i));
    letters.insert(static_cast<char>(i), static_cast<unsigned char>(store::parse('a')));
  }
  const auto add = [](long sum, long value) { return sum + value; };
  std::printf("%ld\n", numbers.fold(add) + letters.fold(add));
}
