#include "capture/linux/emulator/code_store.h"

#include <algorithm>
#include <cstring>

namespace ptkit::capture {

namespace {
// Known bytes between dirty bytes are written again if they are shorter than the header of another record.
constexpr std::size_t kMaxBridge = 56;
}  // namespace

void CodeStore::map(std::uint64_t begin, std::uint64_t end, std::int32_t file, std::uint64_t file_offset) {
  if (begin >= end) return;
  collect();
  // The new mapping replaces what it overlaps. The rest of an old mapping on either side stays.
  auto at = sources_.lower_bound(begin);
  if (at != sources_.begin()) {
    const auto before = std::prev(at);
    if (before->second.end > begin) {
      const Source rest = before->second;
      before->second.end = begin;
      if (rest.end > end)
        sources_.insert_or_assign(end, Source{rest.end, rest.file, rest.file_offset + (end - before->first)});
    }
  }
  while (at != sources_.end() && at->first < end) {
    const Source rest = at->second;
    if (rest.end > end)
      sources_.insert_or_assign(end, Source{rest.end, rest.file, rest.file_offset + (end - at->first)});
    at = sources_.erase(at);
  }
  sources_.insert_or_assign(begin, Source{end, file, file_offset});
}

bool CodeStore::add(std::uint64_t address, base::Bytes bytes, std::uint64_t tsc) {
  bool changed = false;
  while (!bytes.empty()) {
    const std::size_t size = std::min<std::size_t>(bytes.size(), kPageBytes - address % kPageBytes);
    changed |= add_to_page(address, bytes.first(size), tsc);
    bytes = bytes.subspan(size);
    address += size;
  }
  return changed;
}

bool CodeStore::add_to_page(std::uint64_t address, base::Bytes bytes, std::uint64_t tsc) {
  const std::size_t offset = address % kPageBytes;
  std::unique_ptr<Page>& slot = pages_[address - offset];
  if (slot == nullptr) slot = std::make_unique<Page>();
  Page& page = *slot;
  bool changed = false;
  for (std::size_t i = 0; i < bytes.size() && !changed; ++i)
    changed = page.known[offset + i] && page.bytes[offset + i] != bytes[i];
  if (changed) collect(address - offset, page);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    page.bytes[offset + i] = bytes[i];
    if (!page.known[offset + i] && !changed) page.dirty.set(offset + i);
    page.known.set(offset + i);
  }
  if (changed) {
    page.changed = true;
    emit(address, bytes, tsc);
  } else if (!page.listed && page.dirty.any()) {
    page.listed = true;
    dirty_pages_.push_back(address - offset);
  }
  return changed;
}

bool CodeStore::is_of_file(std::uint64_t address) const {
  const auto source = sources_.upper_bound(address);
  return source != sources_.begin() && std::prev(source)->second.end > address &&
         std::prev(source)->second.file >= 0;
}

bool CodeStore::has(std::uint64_t first, std::uint64_t last) const {
  return std::ranges::any_of(pages_, [&](const auto& one) {
    const auto& [address, page] = one;
    if (last < address || first > address + (kPageBytes - 1)) return false;
    const std::uint64_t end = std::min<std::uint64_t>(last - address, kPageBytes - 1);
    for (std::uint64_t at = std::max(first, address) - address; at <= end; ++at) {
      if (page->known[at]) return true;
    }
    return false;
  });
}

std::vector<trace::CodeRegion> CodeStore::take() {
  collect();
  return std::exchange(ready_, {});
}

void CodeStore::collect() {
  for (const std::uint64_t address : dirty_pages_) {
    Page& page = *pages_[address];
    collect(address, page);
    page.listed = false;
  }
  dirty_pages_.clear();
}

void CodeStore::collect(std::uint64_t page_address, Page& page) {
  // Changed bytes are not valid from the beginning of the recording.
  const std::size_t bridge = page.changed ? 1 : kMaxBridge;
  for (std::size_t begin = page.dirty._Find_first(); begin < kPageBytes;) {
    std::size_t end = begin + 1;  // after the last dirty byte
    for (std::size_t at = end; at < kPageBytes && page.known[at] && at - end < bridge; ++at) {
      if (page.dirty[at]) end = at + 1;
    }
    emit(page_address + begin, base::Bytes(page.bytes).subspan(begin, end - begin), trace::kTscMin);
    begin = page.dirty._Find_next(end - 1);
  }
  page.dirty.reset();
}

void CodeStore::emit(std::uint64_t address, base::Bytes bytes, std::uint64_t tsc_from) {
  trace::CodeRegion region;
  region.space = space_;
  region.address = address;
  region.size = bytes.size();
  region.bytes = trace::TraceBuffer::from_vector({bytes.begin(), bytes.end()});
  region.tsc_from = tsc_from;
  auto source = sources_.upper_bound(address);
  if (source != sources_.begin() && (--source)->second.end > address) {
    region.file = source->second.file;
    if (region.file >= 0) region.file_offset = source->second.file_offset + (address - source->first);
  }
  ready_.push_back(std::move(region));
}

void BlockBytes::add(std::uint64_t pc, base::Bytes bytes) {
  const std::lock_guard lock(mutex_);
  entries_.push_back({pc, bytes_.size()});
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
}

BlockBytes::Block BlockBytes::get(std::uint32_t number) const {
  const BlockBytes* owner = this;
  while (number < owner->inherited_) owner = owner->parent_.get();
  const std::lock_guard lock(owner->mutex_);
  const std::size_t index = number - owner->inherited_;
  const Entry& entry = owner->entries_[index];
  const std::uint64_t end =
      index + 1 < owner->entries_.size() ? owner->entries_[index + 1].begin : owner->bytes_.size();
  return {entry.pc,
          {owner->bytes_.begin() + static_cast<std::ptrdiff_t>(entry.begin),
           owner->bytes_.begin() + static_cast<std::ptrdiff_t>(end)}};
}

}  // namespace ptkit::capture
