// Reads the table of functions that the runtime of Go needs for stack traces (.gopclntab). Stripped programs
// have it, too. Go's source has its form: src/runtime/symtab.go of each version.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"

namespace ptkit::code::image {

// A part of a program that is loaded: a section, or a segment.
struct LoadedPart {
  std::string_view name;      // of a section; may be empty
  std::uint64_t address = 0;  // linked
  std::uint64_t file_offset = 0;
  base::Bytes bytes;
  bool executable = false;
};

// A program as it is linked. The file's bytes must outlive it.
struct LoadedProgram {
  std::vector<LoadedPart> parts;  // sorted by address
  // Addresses of pointers that the loader writes, and the linked addresses that they point to. Sorted. Other
  // pointers are as in the file.
  std::vector<std::pair<std::uint64_t, std::uint64_t>> pointers;
  bool is_64_bit = true;
};

struct GoFunction {
  std::string_view name;
  std::uint64_t address = 0;      // linked
  std::uint64_t file_offset = 0;  // of its first byte
  std::uint64_t size = 0;         // bytes up to the next function
};

// The functions of the first table that is sound, by address: of a section of its name, or one to which the
// program has a pointer. Empty: the program has none. Tables of Go 1.2, 1.16, 1.18 and 1.20 differ in their
// magic number; later versions of Go write that of 1.20.
[[nodiscard]] std::vector<GoFunction> read_go_functions(const LoadedProgram& program);

}  // namespace ptkit::code::image
