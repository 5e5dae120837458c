#include "capture/linux/files/file_extents.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ptkit::capture {

std::optional<FileExtents::Extent> FileExtents::next() {
  if (at_ >= to_) return {};
  const off_t data = ::lseek(file_.get(), static_cast<off_t>(at_), SEEK_DATA);
  if (data < 0 && errno == ENXIO) return {};  // only a hole up to the file's end
  // File systems without SEEK_DATA read holes as zeros.
  const std::uint64_t begin = data < 0 ? at_ : static_cast<std::uint64_t>(data);
  if (begin >= to_) return {};
  const off_t hole = data < 0 ? data : ::lseek(file_.get(), data, SEEK_HOLE);
  at_ = hole > data ? std::min(to_, static_cast<std::uint64_t>(hole)) : to_;
  return Extent{begin, at_};
}

}  // namespace ptkit::capture
