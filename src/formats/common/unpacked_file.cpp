#include "formats/common/unpacked_file.h"

#include <unistd.h>

#include <utility>

namespace ptkit::formats {

std::uint64_t UnpackedFile::add(std::uint64_t bytes) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::scoped_lock lock(mutex_);
  const std::uint64_t offset = size_;
  size_ += (bytes + page - 1) / page * page;
  return offset;
}

std::optional<base::Failure> UnpackedFile::reserve(std::uint64_t offset, std::uint64_t bytes) {
  const std::scoped_lock lock(mutex_);
  if (!file_) {
    auto created = base::UnnamedFile::create();
    if (!created.ok()) return created.failure();
    file_ = std::move(created.value());
  }
  return file_->reserve(offset, bytes);
}

}  // namespace ptkit::formats
