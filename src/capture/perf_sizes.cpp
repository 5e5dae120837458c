// How large buffers are: as asked for, or as there is memory for them.
#include <algorithm>
#include <array>
#include <bit>
#include <cerrno>
#include <cstdlib>
#include <string_view>
#include <utility>

#include "capture/perf_units.h"

namespace ptkit::capture {

namespace {

constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kKib = 1024;
constexpr std::uint64_t kMib = kKib * kKib;
// What is tried where nobody said how much: memory that may be locked is little without rights.
constexpr std::array<PerfBuffer::Sizes, 5> kSizes{{{kMib, 4 * kMib},
                                                   {128 * kKib, kMib},
                                                   {64 * kKib, 256 * kKib},
                                                   {32 * kKib, 128 * kKib},
                                                   {16 * kKib, 64 * kKib}}};

// Of what is recorded.
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

PerfBuffer::Sizes PerfUnits::sizes_of(std::size_t attempt) const {
  PerfBuffer::Sizes out = kSizes[attempt];
  out.ring = options_.ring_bytes != 0;
  const std::uint64_t asked = out.ring ? options_.ring_bytes : options_.hardware.buffer_bytes;
  if (asked != 0) out.trace = std::bit_ceil(std::max(asked, kPageBytes));
  // Stacks are records.
  if (records(Recorded::STACKS)) out.records = std::exchange(out.trace, 0);
  return out;
}

// The kernel takes memory for buffers away from everybody: who says nothing gets a part of what is free.
bool PerfUnits::fits(std::size_t attempt) const {
  constexpr std::uint64_t kPart = 4;
  if (free_bytes_ == 0) return true;
  const bool is_last =
      attempt + 1 == kSizes.size() || bytes_of(sizes_of(attempt)) == bytes_of(sizes_of(kSizes.size() - 1));
  const std::uint64_t most = is_last ? free_bytes_ : free_bytes_ / kPart;
  const std::uint64_t each = sizes_.trace + sizes_.records;
  return count_buffers() <= most / each;
}

std::string PerfUnits::why_smaller(bool locked) const {
  if (locked) {
    return "as no more memory may be locked: raise kernel.perf_event_mlock_kb or `ulimit -l`, or give sizes "
           "(buffer).";
  }
  const std::string free =
      free_bytes_ == 0 ? "" : " (" + std::to_string(free_bytes_ / kMib) + " MiB are free)";
  return "as there is no memory for " + std::to_string(count_buffers()) + " larger ones" + free +
         ": give sizes (buffer), or record fewer threads or processors (per_thread has a buffer for each "
         "thread).";
}

PerfUnits::Problem PerfUnits::configure(int pid, const std::vector<FilterPlace>& filters) {
  pid_ = pid;
  filters_ = filters;
  free_bytes_ = free_memory(*port_);
  int error = EPERM;
  bool locked = false;  // more would be than may be
  for (std::size_t i = 0; i < kSizes.size() && (error == EPERM || error == ENOMEM); ++i) {
    sizes_ = sizes_of(i);
    close_all();
    if (auto failure = open_all(pid)) return failure;
    if (auto failure = set_filters(filters)) return failure;
    error = fits(i) ? map_buffers() : ENOMEM;
    locked = locked || error == EPERM;
  }
  const std::uint64_t bytes = bytes_of(sizes_);
  if (error != 0) return map_refusal(*port_, bytes, count_buffers(), error).failure();
  if (bytes < bytes_of(sizes_of(0))) {
    warnings_.push_back("Buffers have " + std::to_string(bytes / kKib) + " KiB only, " + why_smaller(locked));
  } else if (sizes_.records < sizes_of(0).records) {
    warnings_.push_back("Rings of records have " + std::to_string(sizes_.records / kKib) +
                        " KiB only beside such buffers, so that many switches or mappings at a time may be "
                        "lost, " +
                        why_smaller(locked));
  }
  tell_who_is_missing();
  if (auto failure = share_buffers()) return failure;
  return open_sideband();
}

}  // namespace ptkit::capture
