// Base relocations of a PE file: addresses in code and data that the loader changes if the image does not lie
// where it was linked for.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "code/image/pe/pe_file.h"

namespace ptkit::code::image {

class PeRelocations {
 public:
  // Reads the headers of the blocks, up to the first one that no linker writes. The file's bytes must outlive
  // the object. Empty if sections overlap in memory, which no loader maps, or repeat the file's bytes often,
  // or if very many share pages.
  explicit PeRelocations(const PeFile& file);

  // Whether an address in [rva, rva + size) is relocated.
  [[nodiscard]] bool any_in(std::uint32_t rva, std::uint64_t size) const noexcept;
  // Whether the relocated addresses are those of an image at `base`, so that a loader has changed them:
  // most of them, or, if none tells, `otherwise`.
  [[nodiscard]] bool are_applied(const PeFile& file, std::uint64_t base, bool otherwise) const;
  // Changes `bytes`, which lie at the RVA, as a loader does that moves the image by `delta`.
  void apply(std::uint64_t delta, std::uint32_t rva, std::span<std::uint8_t> bytes) const noexcept;

 private:
  struct Block {
    std::uint32_t page = 0;
    base::Bytes entries;  // of 2 bytes
  };
  [[nodiscard]] bool is_much_work(const PeFile& file) const;
  [[nodiscard]] std::span<const Block> blocks_of(std::uint32_t rva, std::uint64_t size) const noexcept;

  std::vector<Block> blocks_;  // sorted by page
};

}  // namespace ptkit::code::image
