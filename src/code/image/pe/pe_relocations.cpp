// Names and numbers are from "PE Format" (Microsoft), section "The .reloc Section".
#include "code/image/pe/pe_relocations.h"

#include <algorithm>
#include <utility>

namespace ptkit::code::image {
namespace {

constexpr std::size_t kHeaderBytes = 8;
constexpr std::size_t kEntryBytes = 2;
constexpr std::uint32_t kPageBytes = 0x1000;
constexpr std::size_t kMostBlocks = std::size_t{1} << 20U;  // pages of the largest image

enum Type : unsigned { kHigh = 1, kLow = 2, kHighLow = 3, kHighAdjusted = 4, kDir64 = 10 };

struct Entry {
  std::uint32_t rva = 0;
  unsigned type = 0;
};

Entry entry_at(std::uint32_t page, base::Bytes entries, std::size_t at) noexcept {
  const auto entry = static_cast<std::uint32_t>(base::load_le<2>(entries.data() + at));
  return {page + (entry & 0xfffU), entry >> 12U};
}

std::size_t width_of(unsigned type) noexcept {
  if (type == kHighLow) return 4;
  if (type == kDir64) return 8;
  return type == kHigh || type == kLow || type == kHighAdjusted ? 2 : 0;
}

template <std::size_t N>
void put(std::uint8_t* to, std::uint64_t value) noexcept {
  for (std::size_t i = 0; i < N; ++i) to[i] = static_cast<std::uint8_t>(value >> (8 * i));
}

// `low`: the entry behind one of kHighAdjusted has the lower half of the address.
void relocate(std::uint8_t* at, unsigned type, std::uint64_t delta, std::uint64_t low) noexcept {
  constexpr std::uint64_t kRound = 0x8000;
  switch (type) {
    case kHigh:
      return put<2>(at, ((base::load_le<2>(at) << 16U) + delta) >> 16U);
    case kLow:
      return put<2>(at, base::load_le<2>(at) + delta);
    case kHighLow:
      return put<4>(at, base::load_le<4>(at) + delta);
    case kHighAdjusted:
      return put<2>(at, ((base::load_le<2>(at) << 16U) + base::sign_extend(low, 16) + delta + kRound) >> 16U);
    case kDir64:
      return put<8>(at, base::load_le<8>(at) + delta);
    default:
      return;
  }
}

bool overlap(const PeFile& file) {
  constexpr std::uint64_t kRepeated = 4;
  std::uint64_t bytes = 0;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> parts;
  for (const PeFile::Section& one : file.sections()) {
    bytes += one.file_size;
    if (one.file_size != 0) parts.emplace_back(one.address, std::uint64_t{one.address} + one.file_size);
  }
  std::ranges::sort(parts);
  const auto touch = [](const auto& a, const auto& b) { return b.first < a.second; };
  return bytes > kRepeated * file.bytes().size() || std::ranges::adjacent_find(parts, touch) != parts.end();
}

}  // namespace

PeRelocations::PeRelocations(const PeFile& file) {
  const PeFile::Directory table = file.directory(PeFile::kRelocations);
  if (table.address == 0 || overlap(file)) return;
  for (std::uint64_t at = 0; at + kHeaderBytes <= table.size && blocks_.size() < kMostBlocks;) {
    const std::uint64_t address = table.address + at;
    if (address > 0xffff'ffff) break;
    const base::Bytes header = file.at_address(static_cast<std::uint32_t>(address), kHeaderBytes);
    if (header.empty()) break;
    const std::uint32_t size = load_u32(header, 4);
    if (size < kHeaderBytes || size > table.size - at) break;
    const base::Bytes block = file.at_address(static_cast<std::uint32_t>(address), size);
    if (block.empty() || load_u32(header, 0) > 0xffff'ffff - kPageBytes) break;
    blocks_.push_back({load_u32(header, 0), block.subspan(kHeaderBytes)});
    at += size;
  }
  std::ranges::stable_sort(blocks_, {}, &Block::page);
  if (is_much_work(file)) blocks_.clear();
}

// Sections of a hostile file may share pages: each of them goes through all blocks of its pages.
bool PeRelocations::is_much_work(const PeFile& file) const {
  constexpr std::uint64_t kRepeated = 16;
  constexpr std::uint64_t kAlways = std::uint64_t{1} << 22U;
  std::vector<std::uint64_t> before{0};  // bytes of the blocks before each block
  for (const Block& block : blocks_) before.push_back(before.back() + kHeaderBytes + block.entries.size());
  std::uint64_t bytes = 0;
  for (const PeFile::Section& one : file.sections()) {
    const std::span<const Block> blocks = blocks_of(one.address, one.file_size);
    const auto first = static_cast<std::size_t>(blocks.data() - blocks_.data());
    bytes += before[first + blocks.size()] - before[first];
  }
  return bytes > kRepeated * before.back() + kAlways;
}

// A field may begin in the page before, and an entry's offset is less than a page.
std::span<const PeRelocations::Block> PeRelocations::blocks_of(std::uint32_t rva,
                                                               std::uint64_t size) const noexcept {
  const std::uint64_t begin = rva < kPageBytes ? 0 : rva - std::uint64_t{kPageBytes} + 1;
  const auto first = std::ranges::lower_bound(blocks_, begin, {}, &Block::page);
  const auto last = std::ranges::lower_bound(first, blocks_.end(), rva + size, {}, &Block::page);
  return {first, last};
}

bool PeRelocations::any_in(std::uint32_t rva, std::uint64_t size) const noexcept {
  return !blocks_of(rva, size).empty();
}

bool PeRelocations::are_applied(const PeFile& file, std::uint64_t base, bool otherwise) const {
  constexpr std::size_t kMostVotes = std::size_t{1} << 16U;
  std::size_t here = 0;
  std::size_t linked = 0;
  const std::uint64_t size = file.size();
  const auto vote = [&](const Entry& entry) {
    const std::size_t width = entry.type == kHighLow || entry.type == kDir64 ? width_of(entry.type) : 0;
    const base::Bytes field = width == 0 ? base::Bytes{} : file.at_address(entry.rva, width);
    if (field.empty()) return;
    const std::uint64_t value = width == 8 ? base::load_le<8>(field.data()) : load_u32(field, 0);
    const std::uint64_t mask = width == 8 ? ~std::uint64_t{0} : 0xffff'ffffU;
    const bool is_here = ((value - base) & mask) < size;
    const bool is_linked = ((value - file.linked_base()) & mask) < size;
    if (is_here != is_linked) ++(is_here ? here : linked);
  };
  for (const Block& block : blocks_) {
    for (std::size_t at = 0; at + kEntryBytes <= block.entries.size(); at += kEntryBytes) {
      if (here + linked == kMostVotes) break;
      vote(entry_at(block.page, block.entries, at));
    }
  }
  return here == linked ? otherwise : here > linked;
}

void PeRelocations::apply(std::uint64_t delta, std::uint32_t rva,
                          std::span<std::uint8_t> bytes) const noexcept {
  for (const Block& block : blocks_of(rva, bytes.size())) {
    const std::size_t count = block.entries.size() / kEntryBytes;
    for (std::size_t i = 0; i < count; ++i) {
      const Entry entry = entry_at(block.page, block.entries, i * kEntryBytes);
      std::uint64_t low = 0;
      if (entry.type == kHighAdjusted) {
        if (++i == count) break;
        low = base::load_le<2>(block.entries.data() + i * kEntryBytes);
      }
      const std::size_t width = width_of(entry.type);
      const std::uint64_t offset = std::uint64_t{entry.rva} - rva;  // wraps before the section
      if (width == 0 || offset >= bytes.size() || bytes.size() - offset < width) continue;
      relocate(bytes.data() + offset, entry.type, delta, low);
    }
  }
}

}  // namespace ptkit::code::image
