// Sizes of buffers: the sizes of the options, or sizes that fit the free and lockable memory.
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "base/addresses.h"
#include "capture/linux/perf/backend.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

using trace::WarningCode;

namespace {

using base::kPageBytes;
constexpr std::uint64_t kKib = 1024;
constexpr std::uint64_t kMib = kKib * kKib;
// Tried in this order if no size is given. Unprivileged users may lock little memory
// (kernel.perf_event_mlock_kb).
constexpr std::array<PerfBuffer::Sizes, 5> kSizes{{{kMib, 4 * kMib},
                                                   {128 * kKib, kMib},
                                                   {64 * kKib, 256 * kKib},
                                                   {32 * kKib, 128 * kKib},
                                                   {16 * kKib, 64 * kKib}}};

// Bytes for the recorded data: AUX area, or records of LBR samples.
std::uint64_t bytes_of(const PerfBuffer::Sizes& sizes) {
  return sizes.trace != 0 ? sizes.trace : sizes.records;
}

}  // namespace

std::uint64_t free_memory(const PerfPort& port) {
  constexpr std::string_view kName = "MemAvailable:";
  const std::string text = port.read("/proc/meminfo").value_or("");
  const std::size_t at = text.find(kName);
  return at == std::string::npos ? 0 : std::strtoull(text.c_str() + at + kName.size(), nullptr, 10) * kKib;
}

PerfBuffer::Sizes PerfBackend::sizes_of(std::size_t attempt) const {
  PerfBuffer::Sizes out = kSizes[attempt];
  out.ring = options_.ring != 0;
  const std::uint64_t asked = out.ring ? options_.ring : options_.buffer;
  if (asked != 0) out.trace = std::bit_ceil(std::max(asked, kPageBytes));
  // Branch stacks are in records.
  if (records(Recorded::LBR)) out.records = std::exchange(out.trace, 0);
  return out;
}

// Buffers take memory from other processes: without a given size, they get at most a quarter of the free
// memory.
bool PerfBackend::fits_memory(std::size_t attempt) const {
  constexpr std::uint64_t kPart = 4;
  if (free_bytes_ == 0) return true;
  const bool is_last =
      attempt + 1 == kSizes.size() || bytes_of(sizes_of(attempt)) == bytes_of(sizes_of(kSizes.size() - 1));
  const std::uint64_t most = is_last ? free_bytes_ : free_bytes_ / kPart;
  const std::uint64_t each = sizes_.trace + sizes_.records;
  return count_buffers() <= most / each;
}

void PerfBackend::warn_of_small_buffers(std::uint64_t bytes, bool locked) {
  const std::string free = free_bytes_ == 0 ? "unknown" : std::to_string(free_bytes_ / kMib) + " MiB";
  const std::uint64_t records = sizes_.records / kKib;
  if (bytes < bytes_of(sizes_of(0))) {
    warnings_.push_back(locked
                            ? warn(WarningCode::BUFFERS_LIMIT_LOCKED, bytes / kKib)
                            : warn(WarningCode::BUFFERS_LIMIT_MEMORY, bytes / kKib, count_buffers(), free));
  } else if (sizes_.records < sizes_of(0).records) {
    warnings_.push_back(locked ? warn(WarningCode::RINGS_LIMIT_LOCKED, records)
                               : warn(WarningCode::RINGS_LIMIT_MEMORY, records, count_buffers(), free));
  }
}

PerfBackend::Problem PerfBackend::configure(int pid, const std::vector<ResolvedFilter>& filters) {
  pid_ = pid;
  filters_ = filters;
  free_bytes_ = free_memory(*port_);
  int error = EPERM;
  bool locked = false;  // some attempt exceeded the limit of locked memory
  for (std::size_t i = 0; i < kSizes.size() && (error == EPERM || error == ENOMEM); ++i) {
    sizes_ = sizes_of(i);
    close_all();
    if (auto failure = open_all(pid)) return failure;
    if (auto failure = set_filters(filters)) return failure;
    error = fits_memory(i) ? map_buffers() : ENOMEM;
    locked = locked || error == EPERM;
  }
  const std::uint64_t bytes = bytes_of(sizes_);
  if (error != 0) return map_error(*port_, bytes, count_buffers(), error).failure();
  warn_of_small_buffers(bytes, locked);
  warn_of_untraced_threads();
  if (auto failure = redirect_to_buffers()) return failure;
  return open_sideband();
}

}  // namespace ptkit::capture
