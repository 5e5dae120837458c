#include "code/image/pages.h"

#include <algorithm>
#include <mutex>

namespace ptkit::code::image {

base::Bytes CallbackPages::at(trace::SpaceId space, std::uint64_t address) const noexcept {
  const std::shared_lock lock(mutex_);
  const auto found = pages_.find({space, address / kPageSize});
  if (found == pages_.end()) return {};
  const Page& page = *found->second;
  const std::size_t first = address % kPageSize;
  std::size_t end = first;
  if (page.known.all()) end = kPageSize;
  while (end < kPageSize && page.known[end]) ++end;
  return base::Bytes(page.bytes).subspan(first, end - first);
}

base::Bytes CallbackPages::fetch(trace::SpaceId space, std::uint64_t address) {
  base::Bytes bytes = at(space, address);
  if (!bytes.empty() || !callback_) return bytes;
  query_callback(space, address - address % kPageSize);
  bytes = at(space, address);
  if (!bytes.empty() || address % kPageSize == 0) return bytes;
  query_callback(space, address);  // the memory may begin inside the page
  return at(space, address);
}

void CallbackPages::query_callback(trace::SpaceId space, std::uint64_t address) {
  std::array<std::uint8_t, kPageSize> buffer{};
  const std::size_t first = address % kPageSize;
  const std::size_t room = kPageSize - first;
  const std::size_t size = std::min(callback_(space, address, std::span(buffer).first(room)), room);
  if (size == 0) return;
  const std::unique_lock lock(mutex_);
  auto& page = pages_[{space, address / kPageSize}];
  if (!page) page = std::make_unique<Page>();
  for (std::size_t i = 0; i < size; ++i) {
    if (page->known[first + i]) continue;
    page->bytes[first + i] = buffer[i];
    page->known[first + i] = true;
  }
}

}  // namespace ptkit::code::image
