#include "capture/linux/perf/ring.h"

#include <algorithm>
#include <atomic>

namespace ptkit::capture {

PerfRing::Spans PerfRing::spans(std::uint64_t from, std::uint64_t to) const noexcept {
  const auto bytes = static_cast<std::size_t>(to - from);
  const auto offset = static_cast<std::size_t>(from % memory_.size());
  const base::Bytes first = memory_.subspan(offset, std::min(bytes, memory_.size() - offset));
  return {first, memory_.first(bytes - first.size())};
}

std::vector<std::uint8_t> PerfRing::copy(std::uint64_t from, std::uint64_t to) const {
  const Spans found = spans(from, to);
  std::vector<std::uint8_t> out(found.first.begin(), found.first.end());
  out.insert(out.end(), found.second.begin(), found.second.end());
  return out;
}

// A seqlock (perf_event.h, perf_event_mmap_page): values read while `lock` changed are invalid.
std::optional<trace::Clock> clock_of(const perf_event_mmap_page& page) noexcept {
  constexpr int kTries = 1000;
  constexpr unsigned kBits = 64;
  for (int i = 0; i < kTries; ++i) {
    const std::uint32_t before = __atomic_load_n(&page.lock, __ATOMIC_ACQUIRE);
    const bool known = page.cap_user_time_zero != 0;
    trace::Clock clock;
    clock.time_shift = page.time_shift;
    clock.time_mult = page.time_mult;
    clock.time_zero = page.time_zero;
    std::atomic_thread_fence(std::memory_order_acquire);
    if (__atomic_load_n(&page.lock, __ATOMIC_RELAXED) != before || (before & 1U) != 0) continue;
    if (!known || clock.time_mult == 0 || clock.time_shift >= kBits) return {};
    clock.perf_time_known = true;
    return clock;
  }
  return {};
}

std::vector<std::uint8_t> unrolled(base::Bytes memory, std::uint64_t position, bool& lapped) {
  const auto offset = static_cast<std::size_t>(position % memory.size());
  const base::Bytes after = memory.subspan(offset);
  lapped = lapped || std::any_of(after.rbegin(), after.rend(), [](std::uint8_t byte) { return byte != 0; });
  std::vector<std::uint8_t> out;
  if (lapped) out.assign(after.begin(), after.end());
  const base::Bytes before = memory.first(offset);
  out.insert(out.end(), before.begin(), before.end());
  return out;
}

}  // namespace ptkit::capture
