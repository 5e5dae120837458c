#include "formats/common/bts_ring.h"

#include <algorithm>
#include <string>

namespace ptkit::formats {

using trace::BranchRecord;

namespace {

// No code is straight for so many bytes. This also covers paths between user and kernel addresses.
constexpr std::uint64_t kMostStraightBytes = std::uint64_t{1} << 30U;

// Addresses that belong to one level in all systems. 32-bit kernels begin at 2 GiB (Windows) or 3 GiB
// (Linux, and Windows with /3GB).
struct Levels {
  std::uint64_t user_end = 0;
  std::uint64_t kernel_begin = 0;
};

constexpr Levels levels_of(trace::DsLayout layout) noexcept {
  if (layout == trace::DsLayout::BITS32) return {.user_end = 0x8000'0000, .kernel_begin = 0xc000'0000};
  return {.user_end = std::uint64_t{1} << 63U, .kernel_begin = std::uint64_t{1} << 63U};
}

bool has_both_levels(std::span<const BranchRecord> records, const Levels& levels) {
  const auto any = [&](auto&& is_of_level) {
    return std::any_of(records.begin(), records.end(), [&](const BranchRecord& record) {
      return is_of_level(record.from_ip) && is_of_level(record.to_ip);
    });
  };
  return any([&](std::uint64_t ip) { return ip < levels.user_end; }) &&
         any([&](std::uint64_t ip) { return ip >= levels.kernel_begin; });
}

bool can_follow(const BranchRecord& before, const BranchRecord& record) noexcept {
  return record.from_ip >= before.to_ip && record.from_ip - before.to_ip < kMostStraightBytes;
}

}  // namespace

RingSeam find_seam(std::span<const BranchRecord> records, trace::DsLayout layout) {
  std::size_t breaks = 0;
  std::size_t oldest = 0;
  for (std::size_t i = 0; i < records.size(); ++i) {
    if (can_follow(i == 0 ? records.back() : records[i - 1], records[i])) continue;
    oldest = i;
    ++breaks;
  }
  if (breaks != 1 || !has_both_levels(records, levels_of(layout))) return {};
  return {.oldest = oldest, .certain = true};
}

void begin_with(std::vector<BranchRecord>& records, std::size_t oldest) {
  std::rotate(records.begin(), records.begin() + static_cast<std::ptrdiff_t>(oldest), records.end());
}

std::optional<base::Failure> begin_at_index(trace::DsRecords& all, std::uint64_t index) {
  const std::size_t count = all.records.size() + all.empty;
  if (index > count) {
    return base::bad_config("bts_index=" + std::to_string(index) + ": the buffer has " +
                            std::to_string(count) + " records");
  }
  if (index < all.records.size()) begin_with(all.records, static_cast<std::size_t>(index));
  return {};
}

}  // namespace ptkit::formats
