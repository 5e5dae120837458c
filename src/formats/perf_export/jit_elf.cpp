#include "formats/perf_export/jit_elf.h"

#include <algorithm>

namespace ptkit::formats::perf {

namespace {

// perf caches decoded blocks by the file offset of the first byte, and reads an instruction from one file. A
// new version therefore includes unchanged bytes before and after the changed ones.
constexpr std::uint64_t kBefore = 256;
constexpr std::uint64_t kAfter = 16;
constexpr std::uint64_t kAlignment = 16;

}  // namespace

const JitElf::Page* JitElf::page_of(std::uint64_t address) const {
  const auto found = pages_.find(address / kPageBytes);
  return found == pages_.end() ? nullptr : &found->second;
}

bool JitElf::known(std::uint64_t address) const {
  const Page* const page = page_of(address);
  return page != nullptr && page->known[address % kPageBytes];
}

void JitElf::put(std::uint64_t address, base::Bytes bytes) {
  if (bytes.empty()) return;
  for (std::size_t done = 0; done < bytes.size();) {
    const std::uint64_t at = address + done;
    Page& page = pages_[at / kPageBytes];
    const std::size_t first = at % kPageBytes;
    const std::size_t size = std::min(bytes.size() - done, kPageBytes - first);
    std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(done), size, page.bytes.begin() + first);
    for (std::size_t i = first; i < first + size; ++i) page.known.set(i);
    done += size;
  }
  change(address, address + bytes.size());
}

void JitElf::change(std::uint64_t begin, std::uint64_t end) {
  auto next = changed_.lower_bound(begin);
  if (next != changed_.begin() && std::prev(next)->second >= begin) --next;
  while (next != changed_.end() && next->first <= end) {
    begin = std::min(begin, next->first);
    end = std::max(end, next->second);
    next = changed_.erase(next);
  }
  changed_.emplace(begin, end);
}

template <typename Each>
void JitElf::for_each_run(std::uint64_t begin, std::uint64_t end, Each&& each) {
  for (auto page = pages_.lower_bound(begin / kPageBytes);
       page != pages_.end() && page->first * kPageBytes < end; ++page) {
    const std::uint64_t last = std::min(end, (page->first + 1) * kPageBytes);
    for (std::uint64_t at = std::max(begin, page->first * kPageBytes); at < last; ++at) {
      std::uint64_t after = at;
      while (after < last && page->second.known[after % kPageBytes]) ++after;
      if (after == at) continue;
      each(page->second, at, after);
      at = after;
    }
  }
}

void JitElf::remap(std::uint64_t begin, std::uint64_t end) {
  for_each_run(begin, end, [this](Page&, std::uint64_t at, std::uint64_t after) { change(at, after); });
}

void JitElf::forget(std::uint64_t begin, std::uint64_t end) {
  for_each_run(begin, end, [](Page& page, std::uint64_t at, std::uint64_t after) {
    for (; at < after; ++at) page.known.reset(at % kPageBytes);
  });
}

bool JitElf::file_has(std::uint64_t offset, base::Bytes bytes) const {
  if (offset < kFirstOffset || offset - kFirstOffset > file_.size()) return false;
  const base::Bytes there = base::Bytes(file_).subspan(offset - kFirstOffset);
  return there.size() >= bytes.size() && std::ranges::equal(there.first(bytes.size()), bytes);
}

std::uint64_t JitElf::offset_of(std::uint64_t begin, std::uint64_t end) {
  std::vector<std::uint8_t> bytes;
  for (std::uint64_t at = begin; at < end;) {
    const std::uint64_t after = std::min(end, (at / kPageBytes + 1) * kPageBytes);
    const auto* const from = page_of(at)->bytes.data() + at % kPageBytes;
    bytes.insert(bytes.end(), from, from + (after - at));
    at = after;
  }
  if (const auto before = offsets_.find(begin); before != offsets_.end()) {
    const std::uint64_t offset = begin - before->second.value;
    if (file_has(offset, bytes)) return offset;
  }
  file_.resize((file_.size() + kAlignment - 1) / kAlignment * kAlignment);
  const std::uint64_t offset = kFirstOffset + file_.size();
  file_.insert(file_.end(), bytes.begin(), bytes.end());
  offsets_.assign(begin, end - 1, begin - offset);
  return offset;
}

std::vector<JitElf::Chunk> JitElf::take_changes() {
  std::vector<Chunk> chunks;
  for (const auto& [first, last] : changed_) {
    std::uint64_t begin = first;
    while (first - begin < kBefore && known(begin - 1)) --begin;
    std::uint64_t after = last;
    while (after - last < kAfter && known(after)) ++after;
    chunks.push_back({begin, last - begin, offset_of(begin, after)});
  }
  changed_.clear();
  return chunks;
}

}  // namespace ptkit::formats::perf
