#include "tables/columns/part_memory.h"

namespace ptkit::tables::columns {
namespace {

constexpr std::size_t kLine = 64;
constexpr std::size_t kApart = 5 * kLine;  // avoids cache set conflicts between the same rows of two columns

}  // namespace

PartMemory take_part(MemoryPool& pool, TableId table, ColumnMask mask, std::size_t rows) {
  const auto infos = columns_of(table);
  std::array<std::size_t, kMaxColumns> begins{};
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < infos.size(); ++i) {
    begins[i] = bytes;
    if (((mask >> i) & 1) == 0) continue;
    bytes += (rows * cell_size(infos[i].type) + kLine - 1) / kLine * kLine + kApart;
  }
  PartMemory part;
  part.memory = pool.take(bytes);
  if (part.memory == nullptr) return {};
  part.rows = rows;
  auto* const first = static_cast<std::uint8_t*>(part.memory.get());
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (((mask >> i) & 1) != 0) part.columns[i] = first + begins[i];
  }
  return part;
}

std::size_t row_bytes(TableId table, ColumnMask mask) noexcept {
  std::size_t sum = 0;
  const auto infos = columns_of(table);
  for (std::size_t i = 0; i < infos.size(); ++i) {
    if (((mask >> i) & 1) != 0) sum += cell_size(infos[i].type);
  }
  return sum;
}

}  // namespace ptkit::tables::columns
