#include "formats/common/lazy_bytes.h"

#include <algorithm>
#include <new>

#include "base/memory_left.h"

namespace ptkit::formats {

namespace {

class JoinedBuffers final : public LazyBytes {
 public:
  JoinedBuffers(std::vector<trace::TraceBuffer> parts, std::vector<std::size_t> begins, std::size_t size)
      : LazyBytes(std::move(begins), size), parts_(std::move(parts)) {}

  [[nodiscard]] std::optional<trace::TraceBuffer> again() const override {
    return buffer_of(std::make_shared<JoinedBuffers>(parts_, begins(), bytes().size()));
  }

 private:
  void produce(std::size_t part, std::span<std::uint8_t> out) noexcept override {
    const base::Bytes from = parts_[part].bytes();
    std::copy(from.begin(), from.end(), out.begin());
  }

  std::vector<trace::TraceBuffer> parts_;
};

}  // namespace

LazyBytes::LazyBytes(std::vector<std::size_t> begins, std::size_t size,
                     std::shared_ptr<base::UnpackedFile> file)
    : begins_(std::move(begins)),
      produced_(begins_.size()),
      missing_(begins_.size()),
      memory_(size),
      file_(std::move(file)) {
  if (file_ != nullptr) file_offset_ = file_->add(size);
}

std::optional<base::Failure> LazyBytes::prepare() {
  const std::scoped_lock lock(mutex_);
  return take_room();
}

// Takes memory if the disk has no room.
std::optional<base::Failure> LazyBytes::take_room() {
  if (has_room_ || file_ == nullptr) return {};
  const std::size_t size = memory_.bytes().size();
  if (auto failure = file_->reserve(file_offset_, size)) {
    const base::MemoryBound free = base::memory_left().least();
    if (size > free.usable()) {
      failure->detail = "the trace takes " + std::to_string(size) + " bytes unpacked; of memory " +
                        std::to_string(free.usable()) + " are free (" +
                        std::string(base::memory_limit_name(free.limit)) + "), and " + failure->detail +
                        "; set TMPDIR to a folder on a disk with room";
      return failure;
    }
    has_room_ = true;
    return {};
  }
  has_room_ = true;
  std::size_t largest = 0;
  for (std::size_t i = 0; i < begins_.size(); ++i) largest = std::max(largest, end_of(i) - begins_[i]);
  std::vector<std::uint8_t> scratch(largest);
  if (file_->show(file_offset_, memory_)) scratch_ = std::move(scratch);
  return {};
}

void LazyBytes::put(std::size_t part) noexcept {
  const std::span<std::uint8_t> out = memory_.bytes().subspan(begins_[part], end_of(part) - begins_[part]);
  if (scratch_.empty()) return produce(part, out);
  const std::span<std::uint8_t> made = std::span(scratch_).first(out.size());
  produce(part, made);
  if (file_->write(file_offset_ + begins_[part], made)) return;
  // This part and later ones stay in memory, with the rest of pages that they share with earlier ones.
  std::copy(made.begin(), made.end(), out.begin());
  scratch_ = {};
}

void LazyBytes::need(std::size_t begin, std::size_t end) noexcept {
  if (missing_.load(std::memory_order_acquire) == 0 || begin >= end) return;
  const auto first = std::upper_bound(begins_.begin(), begins_.end(), begin) - begins_.begin() - 1;
  const std::scoped_lock lock(mutex_);
  try {
    if (take_room()) has_room_ = true;
  } catch (const std::bad_alloc&) {
    has_room_ = true;
  }
  for (auto i = static_cast<std::size_t>(first); i < begins_.size() && begins_[i] < end; ++i) {
    if (produced_[i]) continue;
    put(i);
    produced_[i] = true;
    forgotten_ = std::min(forgotten_, i);
    missing_.fetch_sub(1, std::memory_order_release);
  }
}

void LazyBytes::forget_before(std::size_t end) noexcept {
  const std::scoped_lock lock(mutex_);
  const std::size_t first = forgotten_;
  for (; forgotten_ < begins_.size() && end_of(forgotten_) <= end; ++forgotten_) {
    if (produced_[forgotten_]) missing_.fetch_add(1, std::memory_order_relaxed);
    produced_[forgotten_] = false;
  }
  if (first < forgotten_) memory_.release(begins_[first], end_of(forgotten_ - 1));
}

base::Result<trace::TraceBuffer> join_buffers(std::vector<trace::TraceBuffer> parts) {
  std::erase_if(parts, [](const trace::TraceBuffer& part) { return part.size() == 0; });
  if (parts.empty()) return trace::TraceBuffer{};
  if (parts.size() == 1) return std::move(parts.front());
  std::vector<std::size_t> begins;
  std::size_t size = 0;
  for (const trace::TraceBuffer& part : parts) {
    begins.push_back(size);
    size += part.size();
  }
  if (auto joined = buffer_of(std::make_shared<JoinedBuffers>(std::move(parts), std::move(begins), size)))
    return std::move(*joined);
  return base::Failure{base::Status::NO_MEMORY, 0,
                       "cannot reserve memory for a stream of " + std::to_string(size) +
                           " bytes: " + base::ReservedMemory::error()};
}

}  // namespace ptkit::formats
