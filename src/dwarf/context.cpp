#include "dwarf/context.h"

#include <algorithm>
#include <cstring>

namespace ptkit::dwarf {

std::uint64_t longest_string(base::Bytes strings) noexcept {
  std::uint64_t longest = 0;
  while (!strings.empty()) {
    const void* const end = std::memchr(strings.data(), 0, strings.size());
    const std::size_t size =
        end == nullptr ? strings.size()
                       : static_cast<std::size_t>(static_cast<const std::uint8_t*>(end) - strings.data());
    longest = std::max<std::uint64_t>(longest, size);
    strings = strings.subspan(std::min(size + 1, strings.size()));
  }
  return longest;
}

std::uint64_t Context::longest_section_string() {
  if (!longest_string_) {
    longest_string_ = 0;
    for (const base::Bytes section : string_sections)
      longest_string_ = std::max(*longest_string_, longest_string(section));
  }
  return *longest_string_;
}

}  // namespace ptkit::dwarf
