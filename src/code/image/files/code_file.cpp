#include "code/image/files/code_file.h"

#include "code/image/elf/elf.h"
#include "code/image/image.h"
#include "code/image/pe/pe.h"

namespace ptkit::code::image {

base::Result<std::int32_t> add_image(trace::TraceBundle& bundle, const std::string& path,
                                     const Placement& placement) {
  const auto contents = trace::TraceBuffer::map_file(path);
  if (!contents.ok()) return contents.failure();
  return is_pe(contents.value().bytes()) ? add_pe(bundle, path, placement) : add_elf(bundle, path, placement);
}

std::vector<trace::SymbolEntry> read_symbols(base::Bytes file, bool with_ends) {
  return is_pe(file) ? pe_symbols(file, with_ends) : elf_symbols(file, with_ends);
}

}  // namespace ptkit::code::image
