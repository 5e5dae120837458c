#include "packet/windows.h"

#include <algorithm>

namespace ptkit::packet {
namespace {

constexpr std::uint64_t kStepBytes = std::uint64_t{1} << 20U;
constexpr std::size_t kPsbBytes = 16;

// True if 02 82 continues from `at` to the end: the end of the run determines where PSBs begin.
bool continues(base::Bytes bytes, std::size_t at) noexcept {
  while (at + 1 < bytes.size() && bytes[at] == 0x02 && bytes[at + 1] == 0x82) at += 2;
  return at == bytes.size() || (at + 1 == bytes.size() && bytes[at] == 0x02);
}

}  // namespace

std::uint64_t find_psb(const trace::TraceBuffer& data, std::uint64_t from, std::uint64_t limit) noexcept {
  limit = std::min<std::uint64_t>(limit, data.size());
  std::uint64_t known = from;
  while (known < limit) {
    known = std::min(known + kStepBytes, limit);
    data.forget_before(from);
    const base::Bytes bytes = data.part(from, known);
    const std::uint64_t psb = from + find_psb(bytes, 0);
    if (known == limit) return psb;
    if (psb == known) {
      from = std::max(from, known - (kPsbBytes - 1));
    } else if (known - psb > kStepBytes || !continues(bytes, static_cast<std::size_t>(psb - from))) {
      return psb;  // a longer run is no PSB, wherever it ends
    } else {
      from = std::max(from, psb - std::min<std::uint64_t>(psb, kPsbBytes - 1));  // all bytes of the run
    }
  }
  return limit;
}

base::Bytes PsbWindows::next() noexcept {
  begin_ = end_;
  end_ = find_psb(data_, begin_ + kLeastBytes, begin_ + kLeastBytes + kSearchedBytes);
  end_ = std::clamp<std::uint64_t>(end_, begin_, data_.size());
  data_.forget_before(begin_);
  return data_.part(begin_, end_);
}

}  // namespace ptkit::packet
