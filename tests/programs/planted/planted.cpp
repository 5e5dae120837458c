// Runs that part at one line, for a reason of C++ each: argument 1 says which, and INPUT decides.
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>

namespace {

volatile int sum;

struct Shape {
  virtual ~Shape() = default;
  virtual void draw() const = 0;
};

struct Circle final : Shape {
  void draw() const override { sum = sum + 1; }
};

struct Square final : Shape {
  void draw() const override { sum = sum + 2; }
};

const Circle circle;
const Square square;
const Shape* const shapes[] = {&circle, &square};

[[gnu::noinline]] int virtual_call(int number) {
  const Shape* shape = shapes[number & 1];
  shape->draw();  // PARTS virtual_call
  sum = sum + 1;
  return 0;
}

[[gnu::noinline]] void check(int number) {
  if (number > 5)  // PARTS exception
    throw std::out_of_range("number");
  sum = sum + number;
}

[[gnu::noinline]] int exception(int number) {
  try {
    check(number);
  } catch (const std::out_of_range&) {
    return 1;
  }
  return 0;
}

[[gnu::noinline]] int cast(int number) {
  const Shape* shape = shapes[number & 1];
  const auto* round = dynamic_cast<const Circle*>(shape);
  if (round != nullptr)  // PARTS cast
    sum = sum + 3;
  else
    std::abort();
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string kind = count > 1 ? arguments[1] : "";
  const int number = std::atoi(std::getenv("INPUT"));
  if (kind == "virtual_call") return virtual_call(number);
  if (kind == "exception") return exception(number);
  return cast(number);
}
