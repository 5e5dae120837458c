#include "formats/common/ds_area.h"

namespace ptkit::formats {

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

}  // namespace

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
