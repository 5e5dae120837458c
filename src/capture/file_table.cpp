#include "capture/file_table.h"

#include "capture/tracee.h"
#include "image/code_file.h"
#include "image/elf.h"

namespace ptkit::capture {

trace::TraceBuffer read_file_of(pid_t pid, const std::string& path) {
  auto file = trace::TraceBuffer::map_file(process_folder(pid) + "/root" + path);
  if (!file.ok()) file = trace::TraceBuffer::map_file(path);
  return file.ok() ? std::move(file.value()) : trace::TraceBuffer();
}

std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

bool names_file(const std::string& wanted, const std::string& path) {
  return wanted == path || (wanted.find('/') == std::string::npos && wanted == base_name(path));
}

FileTable::Entry FileTable::find(const std::string& key, const std::string& path,
                                 const std::function<trace::TraceBuffer()>& contents) {
  const auto [at, fresh] = numbers_.try_emplace(key, static_cast<std::int32_t>(numbers_.size()));
  Entry entry;
  entry.number = at->second;
  if (!fresh) return entry;
  const trace::TraceBuffer bytes = contents();
  trace::ImageFile& file = entry.fresh.emplace();
  file.path = path;
  file.build_id = image::elf_build_id(bytes.bytes());
  file.symbols = image::read_symbols(bytes.bytes());
  return entry;
}

}  // namespace ptkit::capture
