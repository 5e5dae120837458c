#include "capture/linux/files/file_table.h"

namespace ptkit::capture {

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool names_file(const std::string& name, const std::string& path) {
  return name == path || (name.find('/') == std::string::npos && name == base_name(path));
}

FileTable::Entry FileTable::find(const std::string& key, const std::string& path,
                                 const std::function<ParsedFile()>& parse) {
  const auto [at, fresh] = files_.try_emplace(key);
  CachedFile& known = at->second;
  if (!fresh) return {known.number, {}, known.build_id};
  known.number = static_cast<std::int32_t>(files_.size() - 1);
  ParsedFile parsed = parse();
  known.build_id = parsed.build_id;
  trace::ImageFile file;
  file.path = path;
  file.build_id = std::move(parsed.build_id);
  file.symbols = std::move(parsed.symbols);
  file.unwind = std::move(parsed.unwind);
  file.imports = std::move(parsed.imports);
  file.debug = trace::TraceBuffer::from_vector({parsed.debug.begin(), parsed.debug.end()});
  return {known.number, std::move(file), known.build_id};
}

}  // namespace ptkit::capture
