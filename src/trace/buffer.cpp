#include "trace/buffer.h"

#include <algorithm>
#include <utility>

#include "base/system/mapped_file.h"

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
  auto file = base::map_file(path);
  if (!file.ok()) return file.failure();
  return TraceBuffer(file.value().bytes, std::move(file.value().owner));
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
