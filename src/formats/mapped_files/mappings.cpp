#include "formats/mapped_files/mappings.h"

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

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
    std::vector<code::image::FileMapping>& parts = parts_[key_of(mapping)];
    const code::image::FileMapping part{.offset = mapping.file_offset, .size = mapping.size};
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

std::vector<code::image::FileMapping> Mappings::parts_at(const Key& key) const {
  const auto found = parts_.find(key);
  std::vector<code::image::FileMapping> parts;
  if (found != parts_.end()) parts = found->second;
  if (parts.size() > kMostParts) return {};
  std::sort(parts.begin(), parts.end());
  const auto& [owner, path, load] = key;
  for (code::image::FileMapping& part : parts) {
    part.is_preceded = has_memory(owner, load + part.offset);
    part.is_followed = has_memory(owner, load + part.offset + part.size);
  }
  return parts;
}

std::vector<code::image::FileMapping> Mappings::parts_of(const Mapping& mapping) const {
  return parts_at(key_of(mapping));
}

std::vector<std::vector<code::image::FileMapping>> Mappings::other_parts_of(const Mapping& mapping) const {
  const Key own = key_of(mapping);
  const std::vector<code::image::FileMapping> own_parts = parts_at(own);
  std::set<std::vector<code::image::FileMapping>> others;
  std::size_t left = kMostParts;
  for (auto at = parts_.lower_bound({mapping.owner, mapping.path, 0}); at != parts_.end() && left > 0; ++at) {
    if (std::get<0>(at->first) != mapping.owner || std::get<1>(at->first) != mapping.path) break;
    --left;
    if (at->first == own) continue;
    std::vector<code::image::FileMapping> parts = parts_at(at->first);
    if (!parts.empty() && parts != own_parts) others.insert(std::move(parts));
  }
  return {others.begin(), others.end()};
}

}  // namespace ptkit::formats::perf
