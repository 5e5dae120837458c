#include "code/bounds/table.h"

#include <algorithm>

namespace ptkit::code::bounds {
namespace {

// The range that contains an offset, of sorted ranges without overlaps; the end of `ranges` if none does.
template <typename Ranges>
auto range_at(const Ranges& ranges, std::uint64_t offset) noexcept {
  const auto above =
      std::ranges::upper_bound(ranges, offset, {}, [](const auto& one) { return std::uint64_t{one.begin}; });
  if (above == ranges.begin()) return ranges.end();
  const auto found = std::prev(above);
  return offset < found->end ? found : ranges.end();
}

}  // namespace

void UnwindTable::collect_pads() {
  for (const CallSite& site : call_sites_) pads_.push_back(site.pad);
  std::ranges::sort(pads_);
  pads_.erase(std::unique(pads_.begin(), pads_.end()), pads_.end());
  pads_.shrink_to_fit();
}

std::optional<FunctionSpan> UnwindTable::function_at(std::uint64_t offset) const noexcept {
  const auto found = range_at(functions_, offset);
  return found == functions_.end() ? std::nullopt : std::optional(FunctionSpan{found->begin, found->end});
}

bool UnwindTable::is_entry(std::uint64_t offset) const noexcept {
  const auto found = range_at(functions_, offset);
  return found != functions_.end() && found->begin == offset &&
         !is_part_[static_cast<std::size_t>(found - functions_.begin())];
}

std::optional<std::uint64_t> UnwindTable::landing_pad_of(std::uint64_t call) const noexcept {
  const auto found = range_at(call_sites_, call);
  return found == call_sites_.end() ? std::nullopt : std::optional<std::uint64_t>(found->pad);
}

bool UnwindTable::is_landing_pad(std::uint64_t offset) const noexcept {
  return std::ranges::binary_search(pads_, offset);
}

bool UnwindTable::is_stub(std::uint64_t offset) const noexcept {
  return range_at(stubs_, offset) != stubs_.end();
}

std::optional<std::uint64_t> UnwindTable::rva_of(std::uint64_t offset) const noexcept {
  const auto found = range_at(segments_, offset);
  return found == segments_.end() ? std::nullopt : std::optional(found->rva + (offset - found->begin));
}

std::size_t UnwindTable::memory_bytes() const noexcept {
  return functions_.capacity() * sizeof(Function) + is_part_.capacity() / 8 +
         call_sites_.capacity() * sizeof(CallSite) + pads_.capacity() * sizeof(FileOffset) +
         stubs_.capacity() * sizeof(Function) + segments_.capacity() * sizeof(Segment);
}

}  // namespace ptkit::code::bounds
