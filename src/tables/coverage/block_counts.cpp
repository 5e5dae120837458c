#include "tables/coverage/block_counts.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <tuple>
#include <utility>

#include "code/symbol/row_views.h"

namespace ptkit::tables::coverage {
namespace {

[[nodiscard]] std::size_t hash_of(const ExecutedBlock& block) noexcept {
  std::uint64_t hash = block.ip * 0x9e3779b97f4a7c15U;
  hash ^= (std::uint64_t{block.space} << 32U | block.instructions) * 0xc2b2ae3d27d4eb4fU;
  return static_cast<std::size_t>(hash ^ (hash >> 29U));
}

[[nodiscard]] auto key_of(const ExecutedBlock& block) noexcept {
  return std::tuple(block.space, block.ip, block.mode, block.instructions);
}

// The instruction at `ip`. False: there is no code, or none that can be decoded.
[[nodiscard]] bool decode_at(const code::image::CodeView& code, std::uint64_t ip, code::insn::ExecMode mode,
                             code::insn::Insn& found) {
  constexpr std::size_t kMostBytes = 15;
  std::array<std::uint8_t, kMostBytes> bytes{};
  const std::size_t size = code.read(ip, bytes);
  return code::insn::decode(mode, base::Bytes(bytes).first(size), found) == base::Status::OK;
}

void add_block(const BlockCounts::Counted& counted, const code::image::CodeView& code, std::uint32_t cs_base,
               std::vector<InstructionCount>& out) {
  const auto& [block, count] = counted;
  std::uint64_t ip = block.ip;
  for (std::uint32_t left = block.instructions; left > 0; --left) {
    code::insn::Insn found;
    if (!decode_at(code, ip, block.mode, found)) {
      out.push_back({ip, count, count * left, block.space, 0});
      return;
    }
    out.push_back({ip, count, count, block.space, found.size});
    ip = code::insn::next_ip(found, block.mode, ip, cs_base);
  }
}

// Adds up the counts of equal addresses, which are neighbours.
void merge(std::vector<InstructionCount>& counts) {
  std::size_t kept = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    const InstructionCount next = counts[i];
    if (kept != 0 && counts[kept - 1].ip == next.ip && counts[kept - 1].space == next.space) {
      InstructionCount& same = counts[kept - 1];
      same.count += next.count;
      same.instructions += next.instructions;
      same.size = std::max(same.size, next.size);
    } else {
      counts[kept++] = next;
    }
  }
  counts.resize(kept);
}

}  // namespace

BlockCounts::Counted& BlockCounts::find(const ExecutedBlock& block) noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t index = hash_of(block) & mask;
  while (slots_[index].count != 0 && slots_[index].block != block) index = (index + 1) & mask;
  return slots_[index];
}

void BlockCounts::grow() {
  const std::vector<Counted> before = std::exchange(slots_, std::vector<Counted>(slots_.size() * 2));
  for (const Counted& counted : before) {
    if (counted.count != 0) find(counted.block) = counted;
  }
}

void BlockCounts::add(const ExecutedBlock& block, std::uint64_t count) {
  if (count == 0) return;
  Counted* slot = &find(block);
  if (slot->count == 0) {
    if (++used_ * 2 > slots_.size()) {
      grow();
      slot = &find(block);
    }
    slot->block = block;
  }
  slot->count += count;
}

std::vector<BlockCounts::Counted> BlockCounts::sorted() const {
  std::vector<Counted> found;
  found.reserve(used_);
  std::copy_if(slots_.begin(), slots_.end(), std::back_inserter(found),
               [](const Counted& counted) { return counted.count != 0; });
  std::sort(found.begin(), found.end(),
            [](const Counted& a, const Counted& b) { return key_of(a.block) < key_of(b.block); });
  return found;
}

std::vector<InstructionCount> count_instructions(const BlockCounts& blocks, const code::image::Image& image) {
  const std::uint32_t cs_base = image.bundle().configuration.cs_base;
  const code::symbol::RowTimes last{code::symbol::kLastTime, code::symbol::kLastTime, true};
  code::symbol::RowViews views(image);
  std::vector<InstructionCount> counts;
  for (const BlockCounts::Counted& counted : blocks.sorted()) {
    const code::image::CodeView& view = views.at(counted.block.space, last.first);
    const code::image::CodeView* const code = views.with_code(view, last, counted.block.ip);
    add_block(counted, code != nullptr ? *code : view, cs_base, counts);  // null: a callback may have it
  }
  std::sort(counts.begin(), counts.end(), [](const InstructionCount& a, const InstructionCount& b) {
    return std::tie(a.space, a.ip) < std::tie(b.space, b.ip);
  });
  merge(counts);
  return counts;
}

}  // namespace ptkit::tables::coverage
