#include "ptmodel/output.h"

#include <algorithm>

namespace ptkit::ptmodel {
namespace {

constexpr std::uint64_t kPage = std::uint64_t{1} << PT_TOPA_BASE_SHIFT;

std::uint64_t offset_of(const OutputPointers& pointers) noexcept {
  return pointers.mask_ptrs >> PT_OUTPUT_OFFSET_SHIFT;
}
void set_offset(OutputPointers& pointers, std::uint64_t offset) noexcept {
  pointers.mask_ptrs = (pointers.mask_ptrs & 0xffffffff) | offset << PT_OUTPUT_OFFSET_SHIFT;
}
std::uint64_t entry_of(const OutputPointers& pointers) noexcept {
  return field_of(pointers.mask_ptrs, PT_OUTPUT_TABLE_OFFSET_SHIFT, PT_OUTPUT_TABLE_OFFSET_WIDTH);
}
void set_entry(OutputPointers& pointers, std::uint64_t entry) noexcept {
  constexpr std::uint64_t kMask = field_mask(PT_OUTPUT_TABLE_OFFSET_SHIFT, PT_OUTPUT_TABLE_OFFSET_WIDTH);
  pointers.mask_ptrs = (pointers.mask_ptrs & ~kMask) | (entry << PT_OUTPUT_TABLE_OFFSET_SHIFT & kMask);
}
std::uint64_t range_mask(const OutputPointers& pointers) noexcept { return pointers.mask_ptrs & 0xffffffff; }

bool has(std::uint64_t entry, unsigned number) noexcept { return (entry >> number & 1) != 0; }

}  // namespace

bool TraceOutput::begin(std::uint64_t ctl, OutputPointers& pointers) {
  scheme_ = has(ctl, PT_CTL_FABRIC_EN) ? Scheme::TRANSPORT
            : has(ctl, PT_CTL_TOPA)    ? Scheme::TOPA
                                       : Scheme::SINGLE_RANGE;
  switch (scheme_) {
    case Scheme::SINGLE_RANGE:
      return valid_range(pointers);
    case Scheme::TOPA:
      return enter_region(pointers);
    case Scheme::TRANSPORT:
      break;
  }
  return true;
}

TraceOutput::Outcome TraceOutput::write(base::Bytes bytes, OutputPointers& pointers) {
  switch (scheme_) {
    case Scheme::SINGLE_RANGE:
      write_range(bytes, pointers);
      break;
    case Scheme::TOPA:
      return write_regions(bytes, pointers);
    case Scheme::TRANSPORT:
      platform_.write_transport(bytes);
      break;
  }
  return {};
}

// ---- single range: section "Single Range Output"

bool TraceOutput::valid_range(const OutputPointers& pointers) const noexcept {
  const std::uint64_t mask = range_mask(pointers);
  const bool contiguous = (mask & (mask + 1)) == 0;
  return contiguous && (pointers.base & mask) == 0 && offset_of(pointers) <= mask;
}

void TraceOutput::write_range(base::Bytes bytes, OutputPointers& pointers) {
  const std::uint64_t mask = range_mask(pointers);
  while (!bytes.empty()) {
    const std::uint64_t offset = offset_of(pointers);
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), mask + 1 - offset));
    platform_.write_physical(pointers.base + offset, bytes.first(size));
    set_offset(pointers, (offset + size) & mask);
    bytes = bytes.subspan(size);
  }
}

// ---- ToPA: section "Table of Physical Addresses (ToPA)"

std::uint64_t TraceOutput::address_in(std::uint64_t entry) const noexcept {
  return entry & field_mask(PT_TOPA_BASE_SHIFT, capabilities_.physical_bits - PT_TOPA_BASE_SHIFT);
}

bool TraceOutput::reserved_set(std::uint64_t entry) const noexcept {
  constexpr std::uint64_t kKnown = bit(PT_TOPA_END) | bit(PT_TOPA_INT) | bit(PT_TOPA_STOP) |
                                   field_mask(PT_TOPA_SIZE_SHIFT, PT_TOPA_SIZE_WIDTH);
  return (entry & ~kKnown) != address_in(entry);
}

// An entry with END names the next table.
bool TraceOutput::follow_link(std::uint64_t entry, OutputPointers& pointers) const noexcept {
  if (has(entry, PT_TOPA_INT) || has(entry, PT_TOPA_STOP)) return false;
  if (entry_of(pointers) == 0) return false;
  if (!capabilities_.topa_multiple() && address_in(entry) != pointers.base) return false;
  pointers.base = address_in(entry);
  set_entry(pointers, 0);
  set_offset(pointers, 0);
  return true;
}

// Reads the current entry, following a link: the next table's first entry must not be one. False: "ToPA
// Errors".
bool TraceOutput::enter_region(OutputPointers& pointers) {
  if (pointers.base % kPage != 0) return false;
  std::uint64_t entry = 0;
  for (;;) {
    entry = platform_.read_physical(pointers.base + entry_of(pointers) * PT_TOPA_ENTRY_BYTES);
    if (reserved_set(entry)) return false;
    if (!has(entry, PT_TOPA_END)) break;
    if (!follow_link(entry, pointers)) return false;
  }
  if (!capabilities_.topa_multiple() && entry_of(pointers) != 0) return false;
  region_ = address_in(entry);
  region_size_ = kPage << field_of(entry, PT_TOPA_SIZE_SHIFT, PT_TOPA_SIZE_WIDTH);
  region_interrupts_ = has(entry, PT_TOPA_INT);
  region_stops_ = has(entry, PT_TOPA_STOP);
  return region_ % region_size_ == 0 && offset_of(pointers) < region_size_;
}

TraceOutput::Outcome TraceOutput::write_regions(base::Bytes bytes, OutputPointers& pointers) {
  Outcome outcome;
  while (!bytes.empty()) {
    const std::uint64_t offset = offset_of(pointers);
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(bytes.size(), region_size_ - offset));
    platform_.write_physical(region_ + offset, bytes.first(size));
    set_offset(pointers, offset + size);
    bytes = bytes.subspan(size);
    if (offset + size < region_size_) break;
    outcome.interrupt |= region_interrupts_;
    outcome.stopped = region_stops_;
    if (outcome.stopped) break;  // the pointers stay behind the region's last byte
    set_entry(pointers, entry_of(pointers) + 1);
    set_offset(pointers, 0);
    outcome.error = !enter_region(pointers);
    if (outcome.error) break;
  }
  return outcome;
}

}  // namespace ptkit::ptmodel
