#include "flow/index/line_set.h"

#include <algorithm>
#include <iterator>

namespace ptkit::flow::index {
namespace {

constexpr unsigned kMostBits = 40;  // log2 of the largest line: a few such lines cover all code
constexpr std::size_t kFirstSlots = 1024;

void put(std::vector<std::uint8_t>& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) out.push_back(static_cast<std::uint8_t>(value | 0x80U));
  out.push_back(static_cast<std::uint8_t>(value));
}

// Reads a variable-length number. False: there is none.
bool take(base::Bytes& rest, std::uint64_t& value) noexcept {
  value = 0;
  for (unsigned shift = 0; shift < 64 && !rest.empty(); shift += 7) {
    const std::uint8_t byte = rest.front();
    rest = rest.subspan(1);
    value |= std::uint64_t{byte & 0x7fU} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

void coarsen(std::vector<std::uint64_t>& lines) {
  for (std::uint64_t& line : lines) line >>= 1U;
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
}

}  // namespace

LineSet::LineSet() : slots_(kFirstSlots, kFree) {}

void LineSet::add_lines(std::uint64_t first, std::uint64_t last) {
  for (std::uint64_t line = first; line <= last; ++line) insert(line);
}

void LineSet::insert(std::uint64_t line) {
  const std::size_t mask = slots_.size() - 1;
  std::size_t at = static_cast<std::size_t>(line * 0x9e37'79b9'7f4a'7c15U >> 32U) & mask;
  while (slots_[at] != kFree) {
    if (slots_[at] == line) return;
    at = (at + 1) & mask;
  }
  slots_[at] = line;
  if (++size_ * 2 > slots_.size()) grow();
}

void LineSet::grow() {
  std::vector<std::uint64_t> before(slots_.size() * 2, kFree);
  before.swap(slots_);
  size_ = 0;
  for (const std::uint64_t line : before) {
    if (line != kFree) insert(line);
  }
}

std::vector<std::uint8_t> LineSet::to_bytes() const {
  std::vector<std::uint64_t> lines;
  std::copy_if(slots_.begin(), slots_.end(), std::back_inserter(lines),
               [](std::uint64_t line) { return line != kFree; });
  std::sort(lines.begin(), lines.end());
  unsigned bits = kLineBits;
  for (; lines.size() > kMostLines && bits < kMostBits; ++bits) coarsen(lines);
  std::vector<std::uint8_t> out;
  put(out, bits);
  put(out, lines.size());
  std::uint64_t before = 0;
  for (const std::uint64_t line : lines) {
    put(out, line - before);
    before = line;
  }
  return out;
}

bool touches(base::Bytes lines, std::span<const IpSpan> spans) noexcept {
  std::uint64_t bits = 0;
  std::uint64_t count = 0;
  if (!take(lines, bits) || !take(lines, count) || bits > kMostBits) return true;
  std::uint64_t line = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t step = 0;
    if (!take(lines, step)) return true;
    line += step;
    for (const IpSpan& span : spans) {
      if (span.first >> bits <= line && line <= span.last >> bits && span.first <= span.last) return true;
    }
  }
  return false;
}

}  // namespace ptkit::flow::index
