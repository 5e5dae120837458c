#include "code/source/dwarf/files/search.h"

#include <elfutils/libdwelf.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <initializer_list>
#include <optional>
#include <string_view>

#include "code/image/elf/elf_file.h"
#include "code/source/dwarf/files/debuginfod.h"

namespace ptkit::code::dwarf {
namespace {

// The CRC of .gnu_debuglink, as in gzip.
std::uint32_t checksum(base::Bytes bytes) noexcept {
  static constexpr auto kTable = [] {
    std::array<std::uint32_t, 256> table{};
    for (std::uint32_t byte = 0; byte < 256; ++byte) {
      std::uint32_t value = byte;
      for (int bit = 0; bit < 8; ++bit)
        value = (value & 1U) != 0 ? 0xEDB8'8320U ^ (value >> 1U) : value >> 1U;
      table[byte] = value;
    }
    return table;
  }();
  std::uint32_t value = ~0U;
  for (const std::uint8_t byte : bytes) value = kTable[(value ^ byte) & 0xFFU] ^ (value >> 8U);
  return ~value;
}

// A separate debug file's name in the file that it belongs to.
struct DebugLink {
  std::string name;
  std::uint32_t checksum = 0;
};

std::optional<DebugLink> debug_link_of(const SharedFile& file) {
  const auto elf = code::image::ElfFile::open(file.bytes());
  if (!elf.ok()) return std::nullopt;
  GElf_Word checksum = 0;
  const char* const name = dwelf_elf_gnu_debuglink(elf.value().get(), &checksum);
  // A file name alone: it is looked for in certain folders.
  if (name == nullptr || *name == '\0' || std::strchr(name, '/') != nullptr) return std::nullopt;
  return DebugLink{name, checksum};
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

std::string name_of(const std::string& path) { return path.substr(path.rfind('/') + 1); }

std::vector<std::string> by_build_id(const std::string& id, const Folders& folders) {
  std::vector<std::string> paths;
  if (id.size() < 4 || id.find_first_not_of("0123456789abcdef") != std::string::npos) return paths;
  for (const std::string& folder : folders)
    paths.push_back(folder + "/.build-id/" + id.substr(0, 2) + "/" + id.substr(2) + ".debug");
  return paths;
}

std::vector<std::string> by_link(const std::string& name, const std::string& program,
                                 const Folders& folders) {
  const std::string file = "/" + name;
  const std::string own = folder_of(program);
  const std::string beside = own + file;
  std::vector<std::string> paths{beside, own + "/.debug" + file};
  for (const std::string& folder : folders) {
    if (own.starts_with('/')) paths.push_back(folder + beside);
    paths.push_back(folder + file);
  }
  return paths;
}

bool has_section(const code::image::ElfFile& elf, std::initializer_list<std::string_view> names) {
  return std::ranges::any_of(elf.sections(), [&](const auto& section) {
    return std::ranges::find(names, section.name) != names.end();
  });
}

// Programs without debug information, as most of a system, would have no lines anyway.
bool has_debug_information(const SharedFile& file) {
  const auto elf = code::image::ElfFile::open(file.bytes());
  return elf.ok() && has_section(elf.value(), {".debug_info", ".zdebug_info"});
}

void find_program(DebugFiles& found, const trace::ImageFile& file) {
  if (!file.build_id.empty() && file.path.starts_with('/')) {
    auto here = shared_file(file.path);
    if (here && here->build_id() == file.build_id) {
      found.program = std::move(here);
      return;
    }
    found.is_rebuilt = here && !here->build_id().empty() && has_debug_information(*here);
  }
  if (file.contents.size() != 0) found.program = std::make_shared<const SharedFile>(file.path, file.contents);
}

// Whether it is worth asking a server.
bool lacks_debug_information(const SharedFile* program) {
  if (program == nullptr) return true;
  const auto elf = code::image::ElfFile::open(program->bytes());
  return elf.ok() && !has_section(elf.value(), {".debug_info", ".zdebug_info", ".symtab"});
}

// Whether a file with the name in a link is the right one.
bool is_debug_file(const SharedFile& found, const std::string& build_id, const DebugLink& link) {
  const bool has_ids = !build_id.empty() && !found.build_id().empty();
  return has_ids ? found.build_id() == build_id : checksum(found.bytes()) == link.checksum;
}

}  // namespace

DebugFiles find_debug_files(const trace::ImageFile& file, const Folders& folders) {
  DebugFiles found;
  find_program(found, file);
  if (file.debug.size() != 0) {
    found.debug = std::make_shared<const SharedFile>(file.path, file.debug);
    return found;
  }
  const std::string id = found.program ? found.program->build_id() : file.build_id;
  const auto link = found.program ? debug_link_of(*found.program) : std::nullopt;
  const auto take = [&](const std::string& path, bool by_name) {
    auto debug = shared_file(path);
    if (!debug || debug == found.program) return false;
    if (by_name ? is_debug_file(*debug, id, *link) : debug->build_id() == id) {
      found.debug = std::move(debug);
    } else {
      found.other = path;
    }
    return found.debug != nullptr;
  };
  // Of files that are given, one with a debug file's name was meant, but is of another build.
  const auto is_named = [&](const std::string& path) {
    const std::string name = name_of(path);
    return link ? name == link->name : name == name_of(file.path) + ".debug";
  };
  bool is_found = std::ranges::any_of(folders, [&](auto& path) {
    const auto given = shared_file(path);
    if (!given) return false;
    const bool is_meant = is_named(path);
    return (is_meant || (!id.empty() && given->build_id() == id)) && take(path, is_meant && link);
  });
  if (!is_found)
    is_found = std::ranges::any_of(by_build_id(id, folders), [&](auto& path) { return take(path, false); });
  if (!is_found && link) {
    const auto paths = by_link(link->name, file.path, folders);
    is_found = std::ranges::any_of(paths, [&](auto& path) { return take(path, true); });
  }
  if (!is_found && lacks_debug_information(found.program.get())) is_found = take(fetch_debug_file(id), false);
  if (is_found) found.other.clear();
  return found;
}

trace::TraceBuffer find_alternate(const AltLink& link, const std::string& path, const Folders& folders) {
  std::vector<std::string> paths = by_build_id(link.build_id, folders);
  if (link.name.starts_with('/')) {
    for (const std::string& folder : folders) {  // where Debian's links lead from another root
      if (const auto at = link.name.find("/.dwz/"); at != std::string::npos)
        paths.push_back(folder + link.name.substr(at));
    }
    paths.push_back(link.name);
  } else {
    paths.push_back(folder_of(path) + "/" + link.name);
  }
  for (const std::string& one : paths) {
    const auto file = shared_file(one);
    if (file && file->build_id() == link.build_id) return file->contents();
  }
  return {};
}

std::vector<trace::TraceBuffer> find_split(const SplitLink& link, const std::string& path,
                                           const Folders& folders) {
  const std::string name = link.name.empty() ? name_of(path) + ".dwp" : name_of(link.name);
  std::vector<std::string> paths;
  if (link.name.starts_with('/')) {
    paths.push_back(link.name);
  } else if (link.folder.starts_with('/')) {
    paths.push_back(link.folder + '/' + link.name);
  }
  paths.push_back(folder_of(path) + '/' + name);
  const std::string first = paths.front();
  for (const std::string& folder : folders) {
    if (name_of(folder) == name) paths.push_back(folder);
    for (const std::string& file : {link.name, name}) paths.emplace_back(folder).append("/").append(file);
    paths.emplace_back(folder).append(first);
  }
  std::vector<trace::TraceBuffer> files;
  for (const std::string& one : paths) {
    auto file = trace::TraceBuffer::map_file(one);  // regular files alone
    if (file.ok() && file.value().size() != 0) files.push_back(std::move(file.value()));
  }
  return files;
}

}  // namespace ptkit::code::dwarf
