#include "base/system/file_reader.h"

#include <algorithm>
#include <utility>

#include "base/win32/file_handle.h"

namespace ptkit::base {

struct FileReader::State {
  FileHandle file;
};

FileReader::FileReader(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

Result<FileReader> FileReader::open(const std::string& path) {
  auto file = FileHandle::open(path);
  if (!file.ok()) return file.failure();
  return FileReader(std::make_shared<const State>(State{std::move(file.value())}));
}

std::size_t FileReader::read(std::uint64_t offset, std::span<std::uint8_t> out) const noexcept {
  constexpr std::size_t kMost = std::size_t{1} << 30U;
  std::size_t done = 0;
  while (done < out.size()) {
    OVERLAPPED position{};
    position.Offset = static_cast<DWORD>(offset + done);
    position.OffsetHigh = static_cast<DWORD>((offset + done) >> 32U);
    DWORD got = 0;
    const auto part = static_cast<DWORD>(std::min(out.size() - done, kMost));
    if (::ReadFile(state_->file.get(), out.data() + done, part, &got, &position) == 0 || got == 0) break;
    done += got;
  }
  return done;
}

}  // namespace ptkit::base
