// Any bytes as input of every reader of one-file formats in C++, of the parsers of members, and of readers of
// folders as a member.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "formats/foreign/drakvuf_scan.h"
#include "formats/perf_event/switch_record.h"
#include "formats/registry.h"
#include "memory_file.h"

namespace {

// Streams that can be opened, with these bytes as their metadata.
class Folder {
 public:
  Folder() : path_(::mkdtemp(name_) == nullptr ? "" : name_) {
    std::ofstream(path_ + "/x-aux-idx0.bin", std::ios::binary) << "\x02\x82\x02\x82";
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  void fill(const std::uint8_t* data, std::size_t size) const {
    std::ofstream(path_ + "/x-sideband.pevent", std::ios::binary)
        .write(reinterpret_cast<const char*>(data), static_cast<std::streamsize>(size));
  }
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  char name_[27] = "/dev/shm/ptkit-fuzz-XXXXXX";
  std::string path_;
};

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const ptkit::test::MemoryFile file;
  static const Folder folder;
  file.fill(data, size);
  static_cast<void>(ptkit::formats::read_perf_switches({data, size}));
  static_cast<void>(ptkit::formats::open(file.path(), {}));
  for (const auto& format : ptkit::formats::formats()) {
    static_cast<void>(format.read(file.path(), {}));
  }
  folder.fill(data, size);
  static_cast<void>(ptkit::formats::open(folder.path(), {.format = "libipt-script"}));
  static_cast<void>(ptkit::formats::drakvuf::scan({data, size}));
  return 0;
}
