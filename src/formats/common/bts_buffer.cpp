#include "formats/common/bts_buffer.h"

#include <algorithm>
#include <string>

namespace ptkit::formats {

using trace::BranchRecord;

namespace {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::size_t kAreaWords = 4;            // of BTS: base, index, absolute maximum, interrupt threshold
constexpr std::uint64_t kMostFlags = 0xffff;     // of a record: one bit is in use
constexpr std::uint64_t kLeastAddress = 0x1000;  // no buffer is in the first page

std::uint64_t word_at(base::Bytes bytes, std::size_t index, trace::DsLayout layout) noexcept {
  if (layout == trace::DsLayout::BITS32) return base::load_le<4>(bytes.data() + index * 4);
  return base::load_le<8>(bytes.data() + index * 8);
}

// The third word of each record is small, and a buffer that has records has one at its begin.
bool has_records(base::Bytes buffer, trace::DsLayout layout) noexcept {
  const std::size_t records = buffer.size() / trace::record_bytes(layout);
  bool is_empty = true;
  for (std::size_t record = 0; record < records; ++record) {
    if (word_at(buffer, 3 * record + 2, layout) > kMostFlags) return false;
    const bool is_written =
        word_at(buffer, 3 * record, layout) != 0 || word_at(buffer, 3 * record + 1, layout) != 0;
    if (is_written && is_empty && record != 0) return false;
    is_empty = is_empty && !is_written;
  }
  return true;
}

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

std::optional<DsDump> find_bts_buffer(base::Bytes dump, trace::DsLayout layout) noexcept {
  const std::size_t bytes = trace::record_bytes(layout);
  const std::size_t area = kAreaWords * static_cast<std::size_t>(layout);
  if (dump.size() < area) return DsDump{.buffer = dump};
  const std::uint64_t base = word_at(dump, 0, layout);
  const std::uint64_t index = word_at(dump, 1, layout);
  const std::uint64_t maximum = word_at(dump, 2, layout);
  // The third word of a record would be its flags, which are no address above the other two. The maximum is
  // the end of the buffer, or a byte more.
  const bool is_area = base >= kLeastAddress && base <= index && index <= maximum &&
                       (index - base) % bytes == 0 && (maximum - base) % bytes <= 1 &&
                       maximum - base >= bytes;
  if (!is_area) return DsDump{.buffer = dump};
  const std::uint64_t size = (maximum - base) / bytes * bytes;
  if (size > dump.size() - area) return std::nullopt;
  // Where the buffer begins in the dump: an area at the begin of a page, or a dump that ends with the buffer.
  const std::uint64_t in_page = base % kPageBytes == 0 ? kPageBytes : base % kPageBytes;
  for (const std::uint64_t begin : {in_page, dump.size() - size}) {
    if (begin < area || begin > dump.size() - size) continue;
    const base::Bytes buffer = dump.subspan(static_cast<std::size_t>(begin), static_cast<std::size_t>(size));
    if (has_records(buffer, layout)) return DsDump{.buffer = buffer, .index = (index - base) / bytes};
  }
  return std::nullopt;
}

}  // namespace ptkit::formats
