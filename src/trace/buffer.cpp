#include "trace/buffer.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/map_memory.h"
#include "base/regular_file.h"

namespace ptkit::trace {

TraceBuffer TraceBuffer::from_vector(std::vector<std::uint8_t> bytes) {
  auto owner = std::make_shared<const std::vector<std::uint8_t>>(std::move(bytes));
  const base::Bytes view(owner->data(), owner->size());
  return {view, std::move(owner)};
}

TraceBuffer TraceBuffer::from_source(base::Bytes bytes, std::shared_ptr<ByteSource> source) {
  ByteSource* const made_by = source.get();
  TraceBuffer buffer(bytes, std::move(source));
  buffer.source_ = made_by;
  return buffer;
}

base::Result<TraceBuffer> TraceBuffer::map_file(const std::string& path) {
  const auto file = base::RegularFile::open(path);
  if (!file.ok()) return file.failure();
  const auto size = static_cast<std::size_t>(file.value().size());
  if (size == 0) return TraceBuffer{};
  void* memory = base::map_memory(size, PROT_READ, MAP_PRIVATE, file.value().descriptor(), 0);
  if (memory == MAP_FAILED) {
    return base::Failure{base::Status::IO_ERROR, 0, path + ": cannot map: " + std::strerror(errno)};
  }
  std::shared_ptr<const void> owner(memory, [size](void* at) { ::munmap(at, size); });
  return TraceBuffer{{static_cast<const std::uint8_t*>(memory), size}, std::move(owner)};
}

TraceBuffer TraceBuffer::again() const {
  if (source_ == nullptr) return *this;
  std::optional<TraceBuffer> again = source_->again();
  if (!again) return *this;
  again->forgets_ = true;
  return std::move(*again);
}

TraceBuffer TraceBuffer::slice(std::size_t offset, std::size_t size) const {
  if (offset > bytes_.size()) offset = bytes_.size();
  if (size > bytes_.size() - offset) size = bytes_.size() - offset;
  return {part(offset, offset + size), owner_};
}

base::Bytes TraceBuffer::part(std::size_t begin, std::size_t end) const noexcept {
  end = std::min(end, bytes_.size());
  begin = std::min(begin, end);
  if (source_ != nullptr) source_->need(begin, end);
  return bytes_.subspan(begin, end - begin);
}

}  // namespace ptkit::trace
