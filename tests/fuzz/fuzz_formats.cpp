// Any bytes, given to every reader of one-file formats, and to the parsers of members.
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>

#include "formats/perf_switch.h"
#include "formats/registry.h"

namespace {

// Readers take paths: a file in memory, written anew for each input.
class File {
 public:
  File() : fd_(::mkstemp(name_)) {}
  ~File() {
    ::close(fd_);
    ::unlink(name_);
  }
  void fill(const std::uint8_t* data, std::size_t size) const {
    if (::ftruncate(fd_, 0) != 0 || ::pwrite(fd_, data, size, 0) != static_cast<ssize_t>(size)) std::abort();
  }
  [[nodiscard]] const char* path() const { return name_; }

 private:
  char name_[27] = "/dev/shm/ptkit-fuzz-XXXXXX";
  int fd_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const File file;
  file.fill(data, size);
  static_cast<void>(ptkit::formats::read_perf_switches({data, size}));
  static_cast<void>(ptkit::formats::open(file.path(), {}));
  for (const auto& format : ptkit::formats::formats()) {
    static_cast<void>(format.read(file.path(), {}));
  }
  return 0;
}
