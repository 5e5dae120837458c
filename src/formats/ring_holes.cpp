#include "formats/ring_holes.h"

#include <algorithm>

#include "packet/decoder.h"

namespace ptkit::formats {

namespace {

constexpr std::size_t kPsbBytes = 16;

bool is_psb(base::Bytes bytes, std::size_t at) {
  return bytes.size() - at >= kPsbBytes && packet::find_psb(bytes.subspan(at, kPsbBytes), 0) == 0;
}

}  // namespace

void RingHoles::advance(std::uint64_t place) noexcept {
  place %= ring_bytes_;
  written_ += (place + ring_bytes_ - place_) % ring_bytes_;
  place_ = place;
}

void RingHoles::take(std::uint64_t place, bool hole) {
  if (hole && (at_.empty() || at_.back() != written_)) at_.push_back(written_);
  advance(place);
  while (!at_.empty() && written_ - at_.front() > ring_bytes_) {
    at_.pop_front();
    older_ = true;
  }
}

std::vector<std::uint64_t> RingHoles::places(base::Bytes fresh, std::uint64_t place, bool lost) {
  advance(place);
  std::vector<std::uint64_t> out;
  if (older_) out.push_back(0);
  for (const std::uint64_t at : at_) {
    const std::uint64_t back = written_ - at;
    const std::uint64_t found = back <= fresh.size() ? fresh.size() - back : 0;
    out.push_back(lost && !is_psb(fresh, static_cast<std::size_t>(found)) ? 0 : found);
  }
  at_.clear();
  older_ = false;
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace ptkit::formats
