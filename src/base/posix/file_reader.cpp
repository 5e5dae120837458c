#include "base/system/file_reader.h"

#include <utility>

#include "base/posix/regular_file.h"

namespace ptkit::base {

struct FileReader::State {
  RegularFile file;
};

FileReader::FileReader(std::shared_ptr<const State> state) noexcept : state_(std::move(state)) {}

Result<FileReader> FileReader::open(const std::string& path) {
  auto file = RegularFile::open(path);
  if (!file.ok()) return file.failure();
  return FileReader(std::make_shared<const State>(State{std::move(file.value())}));
}

std::size_t FileReader::read(std::uint64_t offset, std::span<std::uint8_t> out) const noexcept {
  return state_->file.read(offset, out);
}

}  // namespace ptkit::base
