// Readers of import slots. Internal to src/image.
#pragma once

#include "image/imports.h"

namespace ptkit::image {

class ElfFile;

[[nodiscard]] ImportSlots read_import_slots(const PeFile& file);
// Slots of functions that other files define.
[[nodiscard]] ImportSlots read_import_slots(const ElfFile& file);

}  // namespace ptkit::image
