#include "capture/file_extents.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace ptkit::capture {

std::optional<FileExtents::Extent> FileExtents::next() {
  if (at_ >= to_) return {};
  const off_t data = ::lseek(file_.get(), static_cast<off_t>(at_), SEEK_DATA);
  if (data < 0 && errno == ENXIO) return {};  // nothing but a hole, or the end
  // File systems that do not know their holes read them as zeros.
  const std::uint64_t begin = data < 0 ? at_ : static_cast<std::uint64_t>(data);
  if (begin >= to_) return {};
  const off_t hole = data < 0 ? data : ::lseek(file_.get(), data, SEEK_HOLE);
  at_ = hole > data ? std::min(to_, static_cast<std::uint64_t>(hole)) : to_;
  return Extent{begin, at_};
}

std::size_t read_at(const Fd& file, std::uint64_t offset, std::span<std::uint8_t> to) {
  std::size_t done = 0;
  while (done < to.size()) {
    const ssize_t got =
        ::pread(file.get(), to.data() + done, to.size() - done, static_cast<off_t>(offset + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    done += static_cast<std::size_t>(got);
  }
  return done;
}

}  // namespace ptkit::capture
