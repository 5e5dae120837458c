#include "tables/columns/read/stream_facts.h"

#include "time/span.h"

namespace ptkit::tables::columns {

bool StreamFacts::is_timeless(std::uint32_t index, const trace::Stream& stream,
                              const packet::Errata& errata) {
  // After a loss, times begin again at a PSB that counting may not see.
  if (index >= facts_.size() || stream.kind != trace::StreamKind::PROCESSOR_TRACE || !stream.losses.empty())
    return false;
  Times times = facts_[index].times.load(std::memory_order_relaxed);
  if (times == Times::UNKNOWN) {
    times = time::has_tsc(stream.data.bytes(), errata) ? Times::SOME : Times::NONE;
    facts_[index].times.store(times, std::memory_order_relaxed);
  }
  return times == Times::NONE;
}

std::optional<std::size_t> StreamFacts::rows(std::uint32_t index, TableId table) const noexcept {
  if (index >= facts_.size()) return std::nullopt;
  const auto& of_table = facts_[index].rows_and_one[static_cast<std::size_t>(table)];
  const std::size_t found = of_table.load(std::memory_order_relaxed);
  return found == 0 ? std::nullopt : std::optional(found - 1);
}

void StreamFacts::note_rows(std::uint32_t index, TableId table, std::size_t rows) noexcept {
  if (index >= facts_.size()) return;
  facts_[index].rows_and_one[static_cast<std::size_t>(table)].store(rows + 1, std::memory_order_relaxed);
}

}  // namespace ptkit::tables::columns
