// Tables of Go's functions: of any bytes, in a program with one part of code.
#include <cstdlib>

#include "code/image/go_table.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ptkit;
  constexpr std::uint64_t kCode = 0x1000;
  const base::Bytes bytes(data, size);
  code::image::LoadedProgram program;
  program.is_64_bit = size % 2 == 0;
  program.parts.push_back({".text", kCode, 0, bytes, true});
  program.parts.push_back({size % 3 == 0 ? ".gopclntab" : ".rodata", kCode + size, size, bytes, false});
  if (size >= 16) program.pointers.emplace_back(base::load_le<8>(data), base::load_le<8>(data + 8));
  for (const code::image::GoFunction& one : code::image::read_go_functions(program)) {
    if (one.name.empty() || one.size == 0 || one.size > size || one.file_offset > size - one.size)
      std::abort();
  }
  return 0;
}
