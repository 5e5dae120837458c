#include "base/posix/fd.h"

#include <cerrno>

namespace ptkit::base {

std::size_t read_at(const Fd& file, std::uint64_t offset, std::span<std::uint8_t> to) noexcept {
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

}  // namespace ptkit::base
