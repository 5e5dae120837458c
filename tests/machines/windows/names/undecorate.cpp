// Prints the name that ptkit shows for each name of a Microsoft compiler: undecorate NAME...
#include <cstdio>

#include "code/symbol/names/microsoft.h"

int main(int count, char** names) {
  for (int i = 1; i < count; ++i) {
    const auto name = ptkit::code::symbol::demangle_microsoft(names[i]);
    static_cast<void>(std::puts(name ? name->c_str() : names[i]));
  }
  return 0;
}
