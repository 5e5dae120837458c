#include "formats/perf_data/mappings.h"

#include <algorithm>
#include <iterator>

namespace ptkit::formats::perf {

namespace {

constexpr std::size_t kMostParts = 64;  // a recording could demand any number

}  // namespace

bool is_memory(const std::string& path) {
  if (path == "[vdso]") return false;
  for (const char* const begin : {"//anon", "[", "/dev/zero", "/anon_hugepage", "/SYSV", "/memfd:"}) {
    if (path.starts_with(begin)) return true;
  }
  return !path.starts_with('/') && !path.empty();
}

Mapping mapping_of(const Event& event) {
  return {.owner = static_cast<std::uint64_t>(event.pid),
          .address = event.address,
          .size = event.size,
          .file_offset = event.file_offset,
          .path = event.text,
          .build_id = event.build_id,
          .number = {event.device_major, event.device_minor, event.inode}};
}

void Mappings::add(const Mapping& mapping) {
  if (is_memory(mapping.path)) {
    std::uint64_t& end = memory_[{mapping.owner, mapping.address}];
    end = std::max(end, mapping.address + mapping.size);
  } else {
    std::vector<image::FileMapping>& parts = parts_[key_of(mapping)];
    const image::FileMapping part{.offset = mapping.file_offset, .size = mapping.size};
    if (parts.size() <= kMostParts && std::find(parts.begin(), parts.end(), part) == parts.end())
      parts.push_back(part);
  }
}

// Returns true if anonymous code of the process begins, ends or lies at the address.
bool Mappings::has_memory(std::uint64_t owner, std::uint64_t address) const {
  const auto after = memory_.upper_bound({owner, address});
  return after != memory_.begin() && std::prev(after)->first.first == owner &&
         std::prev(after)->second >= address;
}

std::vector<image::FileMapping> Mappings::parts_of(const Mapping& mapping) const {
  const auto found = parts_.find(key_of(mapping));
  std::vector<image::FileMapping> parts;
  if (found != parts_.end()) parts = found->second;
  if (parts.size() > kMostParts) return {};
  std::sort(parts.begin(), parts.end());
  const std::uint64_t load = mapping.address - mapping.file_offset;
  for (image::FileMapping& part : parts) {
    part.is_preceded = has_memory(mapping.owner, load + part.offset);
    part.is_followed = has_memory(mapping.owner, load + part.offset + part.size);
  }
  return parts;
}

}  // namespace ptkit::formats::perf
