#include "code/symbol/load_addresses.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>

namespace ptkit::code::symbol {
namespace {

constexpr std::uint64_t kUpperHalf = std::uint64_t{1} << 63U;

// Key that regions of one mapping have in common.
auto key_of(const Mapping& one) noexcept {
  const std::uint64_t in_file = one.file < 0 ? 0 : one.address - one.file_offset;
  const std::uint64_t base = one.file < 0 ? 0 : one.address - one.rva;
  return std::tuple(one.space, one.tsc_from, one.tsc_to, one.file, in_file, base);
}

}  // namespace

LoadAddresses::LoadAddresses(std::shared_ptr<const trace::TraceBundle> bundle)
    : bundle_(std::move(bundle)), files_(std::make_unique<File[]>(bundle_->files.size())) {
  std::vector<std::uint64_t> lowest(bundle_->files.size(), std::numeric_limits<std::uint64_t>::max());
  for (const trace::CodeRegion& region : bundle_->code) {
    if (bundle_->file(region.file) == nullptr) continue;
    const auto index = static_cast<std::size_t>(region.file);
    if (region.file_offset == 0) files_[index].begins.emplace_back(region.space, region.address);
    lowest[index] = std::min(lowest[index], region.file_offset);
  }
  for (std::size_t i = 0; i < lowest.size(); ++i) {
    std::ranges::sort(files_[i].begins);
    // perf records the kernel's addresses as offsets in its file.
    if (lowest[i] >= kUpperHalf && lowest[i] != std::numeric_limits<std::uint64_t>::max())
      files_[i].linked_at = lowest[i];
  }
}

const std::vector<code::image::FileSegment>& LoadAddresses::segments_of(File& file, std::size_t index) const {
  std::call_once(file.once,
                 [&] { file.segments = code::image::file_segments(bundle_->files[index].contents.bytes()); });
  return file.segments;
}

std::optional<std::uint64_t> LoadAddresses::known_rva(std::int32_t region_index,
                                                      std::uint64_t address) const {
  const trace::CodeRegion& region = bundle_->code[static_cast<std::size_t>(region_index)];
  if (bundle_->file(region.file) == nullptr) return std::nullopt;
  const std::uint64_t offset = region.file_offset + (address - region.address);
  File& file = files_[static_cast<std::size_t>(region.file)];
  if (const auto rva =
          code::image::rva_of(segments_of(file, static_cast<std::size_t>(region.file)), region, offset))
    return rva;
  const auto above = std::ranges::upper_bound(file.begins, Begin(region.space, region.address));
  if (above != file.begins.begin() && std::prev(above)->first == region.space)
    return address - std::prev(above)->second;
  return std::nullopt;
}

std::uint64_t LoadAddresses::rva(std::int32_t region_index, std::uint64_t address) const {
  if (const auto known = known_rva(region_index, address)) return *known;
  const trace::CodeRegion& region = bundle_->code[static_cast<std::size_t>(region_index)];
  const std::uint64_t offset = region.file_offset + (address - region.address);
  const bool has_file = bundle_->file(region.file) != nullptr;
  return has_file ? offset - files_[static_cast<std::size_t>(region.file)].linked_at : offset;
}

std::uint64_t LoadAddresses::last_of_same(std::int32_t region_index, std::uint64_t address,
                                          std::uint64_t last) const {
  const trace::CodeRegion& region = bundle_->code[static_cast<std::size_t>(region_index)];
  if (bundle_->file(region.file) == nullptr) return last;
  const auto index = static_cast<std::size_t>(region.file);
  const std::uint64_t offset = region.file_offset + (address - region.address);
  const std::uint64_t most =
      std::max(offset + (last - address), offset);  // offsets may be addresses, and wrap
  return address + (code::image::last_of_same(segments_of(files_[index], index), offset, most) - offset);
}

std::vector<trace::SpaceId> LoadAddresses::spaces() const {
  std::set<trace::SpaceId> spaces;
  for (const trace::CodeRegion& region : bundle_->code) spaces.insert(region.space);
  for (const trace::NameRange& range : bundle_->names) spaces.insert(range.space);
  return {spaces.begin(), spaces.end()};
}

std::vector<Mapping> LoadAddresses::mappings() const {
  std::vector<Mapping> all;
  all.reserve(bundle_->code.size());
  for (std::size_t i = 0; i < bundle_->code.size(); ++i) {
    const trace::CodeRegion& region = bundle_->code[i];
    if (region.size == 0 || region.tsc_from >= region.tsc_to) continue;
    const std::uint64_t rva = region.file < 0 ? 0 : this->rva(static_cast<std::int32_t>(i), region.address);
    const std::uint64_t offset = region.file < 0 ? 0 : region.file_offset;
    all.push_back({region.address, region.size, region.file, offset, rva, region.space, region.tsc_from,
                   region.tsc_to});
  }
  for (const trace::NameRange& range : bundle_->names) {
    const trace::ImageFile* const file = bundle_->file(range.file);
    if (file != nullptr && file->symbols.empty() && range.size != 0)
      all.push_back(
          {range.address, range.size, range.file, 0, 0, range.space, trace::kTscMin, trace::kTscMax});
  }
  std::ranges::sort(all, [](const Mapping& a, const Mapping& b) {
    return std::tuple(key_of(a), a.address) < std::tuple(key_of(b), b.address);
  });
  std::vector<Mapping> joined;
  for (const Mapping& one : all) {
    if (!joined.empty() && key_of(joined.back()) == key_of(one)) {
      Mapping& last = joined.back();
      const std::uint64_t from_last = one.address - last.address;
      if (from_last <= last.size) {
        last.size = std::max(last.size, from_last + one.size);
        continue;
      }
    }
    joined.push_back(one);
  }
  std::ranges::sort(joined, {}, [](const Mapping& one) {
    return std::tuple(one.space, one.address, one.tsc_from, one.file, one.size);
  });
  return joined;
}

}  // namespace ptkit::code::symbol
