// Owns a file descriptor.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace ptkit::base {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(fd) {}
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ >= 0) static_cast<void>(::close(fd_));
  }
  [[nodiscard]] int get() const noexcept { return fd_; }
  [[nodiscard]] int release() noexcept { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

// Repeats pread() until `to` is full. Returns fewer bytes only at the end of the file or after an error.
[[nodiscard]] inline std::size_t read_at(const Fd& file, std::uint64_t offset,
                                         std::span<std::uint8_t> to) noexcept {
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
