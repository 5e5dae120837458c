// A file in memory for readers that take paths, rewritten for each input.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <cstdlib>

namespace ptkit::test {

class MemoryFile {
 public:
  MemoryFile() : fd_(::mkstemp(name_)) {}
  ~MemoryFile() {
    ::close(fd_);
    ::unlink(name_);
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  void fill(const std::uint8_t* data, std::size_t size) const {
    if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  }
  [[nodiscard]] const char* path() const { return name_; }

 private:
  char name_[27] = "/dev/shm/ptkit-fuzz-XXXXXX";
  int fd_;
};

}  // namespace ptkit::test
