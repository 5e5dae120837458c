// Readers of import slots. Internal to src/code/image.
#pragma once

#include "code/image/files/imports.h"

namespace ptkit::code::image {

class ElfFile;

[[nodiscard]] ImportSlots read_import_slots(const PeFile& file);
// Slots of functions that other files define.
[[nodiscard]] ImportSlots read_import_slots(const ElfFile& file);

}  // namespace ptkit::code::image
