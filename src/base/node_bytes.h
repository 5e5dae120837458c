// Memory of the nodes of std::map and std::unordered_map.
#pragma once

#include <cstddef>

namespace ptkit::base {

// A node's value, its links (libstdc++: four words in a map; link, hash and bucket in an unordered one), and
// the word that malloc() has of each block, rounded up as it does.
template <typename Value>
[[nodiscard]] constexpr std::size_t node_bytes() noexcept {
  constexpr std::size_t kLinks = 32;
  constexpr std::size_t kAlignment = 16;
  return (sizeof(Value) + kLinks + sizeof(void*) + kAlignment - 1) / kAlignment * kAlignment;
}

}  // namespace ptkit::base
