// Indirect functions (IFUNC): a resolver chooses the function that calls go to, when a program is loaded.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "code/image/elf/elf_file.h"

namespace ptkit::code::image {

// Linked addresses of code that a resolver of so many bytes takes, each once: what it may choose.
[[nodiscard]] std::vector<std::uint64_t> functions_taken_in(const ElfFile& file,
                                                            const std::vector<ElfFile::Section>& sections,
                                                            std::uint64_t resolver, std::uint64_t size);

}  // namespace ptkit::code::image
