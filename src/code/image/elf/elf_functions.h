// Functions of an ELF file that its symbol tables do not name: those of Go's table, and those that the
// resolver of an indirect function (IFUNC) may choose when the program is loaded. Internal to
// src/code/image.
#pragma once

#include <cstdint>
#include <vector>

#include "code/image/elf/elf_file.h"
#include "code/image/go_table.h"

namespace ptkit::code::image {

// By address. Empty: the file has no table of Go's functions. Names live as long as the file's bytes.
[[nodiscard]] std::vector<GoFunction> go_functions(const ElfFile& file);

// Linked addresses of code that a resolver of so many bytes takes, each once: what it may choose.
[[nodiscard]] std::vector<std::uint64_t> functions_taken_in(const ElfFile& file,
                                                            const std::vector<ElfFile::Section>& sections,
                                                            std::uint64_t resolver, std::uint64_t size);

}  // namespace ptkit::code::image
