#include "code/image/files/import_readers.h"

#include "code/image/elf/elf_file.h"
#include "code/image/pe/pe.h"
#include "code/image/pe/pe_file.h"

namespace ptkit::code::image {

Imports::Imports(base::Bytes bytes) {
  if (is_pe(bytes)) {
    const auto file = PeFile::open(bytes);
    if (file.ok()) *this = Imports(file.value());
    return;
  }
  const auto file = ElfFile::open(bytes);
  if (file.ok()) *this = Imports(read_import_slots(file.value()), file_segments(bytes));
}

Imports Imports::of(const trace::ImageFile& file) {
  if (file.contents.size() != 0) return Imports(file.contents.bytes());
  return decode(file.imports).value_or(Imports());
}

}  // namespace ptkit::code::image
