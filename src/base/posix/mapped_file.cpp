#include "base/system/mapped_file.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include "base/posix/map_memory.h"
#include "base/posix/regular_file.h"

namespace ptkit::base {

Result<MappedFile> map_file(const std::string& path) {
  const auto file = RegularFile::open(path);
  if (!file.ok()) return file.failure();
  const auto size = static_cast<std::size_t>(file.value().size());
  if (size == 0) return MappedFile{};
  void* const memory = map_memory(size, PROT_READ, MAP_PRIVATE, file.value().descriptor());
  if (memory == MAP_FAILED) {
    const Status status = errno == ENOMEM ? Status::NO_MEMORY : Status::IO_ERROR;
    return Failure{status, 0, path + ": cannot map: " + std::strerror(errno)};
  }
  return MappedFile{{static_cast<const std::uint8_t*>(memory), size},
                    {memory, [size](void* at) { ::munmap(at, size); }}};
}

}  // namespace ptkit::base
