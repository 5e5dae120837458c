// Functions of PE files: .pdata.
#include "code/bounds/table_builder.h"
#include "code/image/pe/pe_file.h"
#include "code/image/pe/pe_functions.h"

namespace ptkit::code::bounds {

UnwindTable::UnwindTable(const code::image::PeFile& file) {
  TableBuilder out(file.bytes().size());
  for (const code::image::PeFile::Section& section : file.sections()) {
    if (section.executable) out.add_segment(section.offset, section.file_size, section.address);
  }
  for (const code::image::PeFunction& one : code::image::pe_functions(file)) {
    const std::uint64_t size = one.end - one.begin;
    const auto offset = file.offset_of(one.begin);
    if (offset && !file.at_address(one.begin, size).empty()) out.add_function(*offset, size, one.is_part);
  }
  *this = out.finish();
}

}  // namespace ptkit::code::bounds
