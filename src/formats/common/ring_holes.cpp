#include "formats/common/ring_holes.h"

#include <algorithm>

#include "packet/decoder.h"

namespace ptkit::formats {

namespace {

constexpr std::size_t kPsbBytes = 16;

bool is_psb(base::Bytes bytes, std::size_t at) {
  return bytes.size() - at >= kPsbBytes && packet::find_psb(bytes.subspan(at, kPsbBytes), 0) == 0;
}

}  // namespace

void RingHoles::advance(std::uint64_t head) noexcept {
  head %= ring_bytes_;
  written_ += (head + ring_bytes_ - head_) % ring_bytes_;
  head_ = head;
}

void RingHoles::add_aux_record(std::uint64_t head, bool hole) {
  if (hole && (hole_positions_.empty() || hole_positions_.back() != written_))
    hole_positions_.push_back(written_);
  advance(head);
  while (!hole_positions_.empty() && written_ - hole_positions_.front() > ring_bytes_) {
    hole_positions_.pop_front();
    overwritten_hole_ = true;
  }
}

std::vector<std::uint64_t> RingHoles::take_offsets(base::Bytes fresh, std::uint64_t head, bool lost) {
  advance(head);
  std::vector<std::uint64_t> out;
  if (overwritten_hole_) out.push_back(0);
  for (const std::uint64_t at : hole_positions_) {
    const std::uint64_t back = written_ - at;
    const std::uint64_t found = back <= fresh.size() ? fresh.size() - back : 0;
    out.push_back(lost && !is_psb(fresh, static_cast<std::size_t>(found)) ? 0 : found);
  }
  hole_positions_.clear();
  overwritten_hole_ = false;
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace ptkit::formats
