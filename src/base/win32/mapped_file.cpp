#include "base/system/mapped_file.h"

#include "base/win32/file_handle.h"

namespace ptkit::base {

// The view keeps the file's mapping, which keeps the file: both handles can be closed.
Result<MappedFile> map_file(const std::string& path) {
  const auto file = FileHandle::open(path);
  if (!file.ok()) return file.failure();
  LARGE_INTEGER size{};
  if (::GetFileSizeEx(file.value().get(), &size) == 0) return last_failure(path, "map");
  if (size.QuadPart == 0) return MappedFile{};
  const HANDLE mapping = ::CreateFileMappingW(file.value().get(), nullptr, PAGE_READONLY, 0, 0, nullptr);
  if (mapping == nullptr) return last_failure(path, "map");
  const void* const memory = ::MapViewOfFile(mapping, FILE_MAP_READ, 0, 0, 0);
  if (memory == nullptr) {
    const Failure failure = last_failure(path, "map");
    ::CloseHandle(mapping);
    return failure;
  }
  ::CloseHandle(mapping);
  return MappedFile{{static_cast<const std::uint8_t*>(memory), static_cast<std::size_t>(size.QuadPart)},
                    {memory, [](const void* at) { ::UnmapViewOfFile(at); }}};
}

}  // namespace ptkit::base
