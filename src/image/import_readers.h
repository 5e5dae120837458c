// Readers of import slots. Internal to src/image.
#pragma once

#include "image/elf_file.h"
#include "image/imports.h"
#include "image/pe_file.h"

namespace ptkit::image {

[[nodiscard]] ImportSlots read_import_slots(const PeFile& file);
// Slots of functions that other files define.
[[nodiscard]] ImportSlots read_import_slots(const ElfFile& file);

}  // namespace ptkit::image
