// Exceptions through many frames, with destructors, rethrown, of several types, from virtual calls and in
// threads.
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <thread>
#include <typeinfo>
#include <vector>

namespace {

int destroyed = 0;

struct Counted {
  ~Counted() { ++destroyed; }
};

struct Shape {
  virtual ~Shape() = default;
  virtual int sides() const = 0;
};
struct Square : Shape {
  int sides() const override { return 4; }
};
struct Blob : Shape {
  int sides() const override { throw std::domain_error("a blob has none"); }
};

int fall(int depth, int kind) {
  const Counted counted;
  if (depth > 0) return fall(depth - 1, kind) + 1;
  if (kind == 0) throw std::runtime_error("bottom");
  if (kind == 1) throw 42;
  return static_cast<int>(std::string("abc").at(static_cast<size_t>(kind)));
}

int caught(int depth, int kind) {
  try {
    try {
      return fall(depth, kind);
    } catch (const std::runtime_error&) {
      throw;
    }
  } catch (int value) {
    return value;
  } catch (const std::exception& error) {
    return static_cast<int>(std::string(error.what()).size());
  }
}

}  // namespace

int main(int argc, char** argv) {
  int sum = 0;
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 1;
  for (int i = 0; i < 12 * rounds; ++i) sum += caught(i % 12, i % 4);
  std::vector<std::unique_ptr<Shape>> shapes;
  shapes.push_back(std::make_unique<Square>());
  shapes.push_back(std::make_unique<Blob>());
  for (const auto& shape : shapes) {
    try {
      sum += shape->sides();
    } catch (const std::logic_error&) {
      sum += 1000;
    }
  }
  std::thread other([] { destroyed += caught(5, 1); });
  other.join();
  std::printf("%d %d\n", sum, destroyed);
  return 0;
}
