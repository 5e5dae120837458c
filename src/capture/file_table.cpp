#include "capture/file_table.h"

#include "image/code_file.h"
#include "image/elf.h"

namespace ptkit::capture {

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool names_file(const std::string& wanted, const std::string& path) {
  return wanted == path || (wanted.find('/') == std::string::npos && wanted == base_name(path));
}

FileTable::Entry FileTable::find(const std::string& key, const std::string& path,
                                 const std::function<trace::TraceBuffer()>& contents) {
  const auto [at, fresh] = files_.try_emplace(key);
  Known& known = at->second;
  if (!fresh) return {known.number, {}, known.build_id};
  known.number = static_cast<std::int32_t>(files_.size() - 1);
  const trace::TraceBuffer bytes = contents();
  known.build_id = image::elf_build_id(bytes.bytes());
  trace::ImageFile file;
  file.path = path;
  file.build_id = known.build_id;
  file.symbols = image::read_symbols(bytes.bytes());
  return {known.number, std::move(file), known.build_id};
}

}  // namespace ptkit::capture
