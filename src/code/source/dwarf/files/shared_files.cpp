#include "code/source/dwarf/files/shared_files.h"

#include <utility>

#include "code/image/elf/elf.h"
#include "code/source/dwarf/files/search.h"
#include "trace/file_cache.h"

namespace ptkit::code::dwarf {

SharedFile::SharedFile(std::string path, trace::TraceBuffer contents)
    : path_(std::move(path)),
      contents_(std::move(contents)),
      build_id_(code::image::elf_build_id(contents_.bytes())) {}

const DebugInfo* SharedFile::debug_info(const Folders& folders) const {
  std::call_once(once_, [&] {
    const auto alternate = [&](const AltLink& link) {
      trace::TraceBuffer part = find_alternate(link, path_, folders);
      if (part.size() == 0) missing_part_ = link.name;
      return part;
    };
    const auto split = [path = path_, folders](const SplitLink& link) {
      return find_split(link, path, folders);
    };
    info_ = DebugInfo::open(contents_, alternate, split);
  });
  return info_.get();
}

std::shared_ptr<const SharedFile> shared_file(const std::string& path) {
  constexpr std::size_t kMost = 256;
  static auto* const files = new trace::FileCache<SharedFile>(kMost);  // threads may use it to the end
  return files->get(path);
}

}  // namespace ptkit::code::dwarf
