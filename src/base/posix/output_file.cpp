#include "base/system/output_file.h"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "base/posix/new_file.h"

namespace ptkit::base {

struct OutputFile::State {
  NewFile file;
  Fd open;
  std::string error;
};

OutputFile::OutputFile(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
OutputFile::OutputFile(OutputFile&& other) noexcept = default;
OutputFile::~OutputFile() = default;

Result<OutputFile> OutputFile::create(const std::string& path) {
  auto created = NewFile::create(path);
  if (!created.ok()) return created.failure();
  Fd open = created.value().release();
  return OutputFile(std::make_unique<State>(State{std::move(created.value()), std::move(open), {}}));
}

bool OutputFile::write(Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(state_->open.get(), bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      state_->error = std::strerror(errno);
      return false;
    }
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

bool OutputFile::write_at(std::uint64_t offset, Bytes bytes) {
  while (!bytes.empty()) {
    const ssize_t written =
        ::pwrite(state_->open.get(), bytes.data(), bytes.size(), static_cast<::off_t>(offset));
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) {
      state_->error = std::strerror(errno);
      return false;
    }
    offset += static_cast<std::uint64_t>(written);
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

bool OutputFile::cut(std::uint64_t size) {
  const bool done = ::ftruncate(state_->open.get(), static_cast<::off_t>(size)) == 0 &&
                    ::lseek(state_->open.get(), 0, SEEK_END) >= 0;
  if (!done) state_->error = std::strerror(errno);
  return done;
}

std::optional<Failure> OutputFile::name() { return state_->file.rename(); }

// Some file systems report a full disk only when the file is closed.
bool OutputFile::close(const std::optional<Owner>& owner) {
  set_owner(state_->open.get(), owner);
  if (::close(state_->open.release()) == 0) return true;
  state_->error = std::strerror(errno);
  return false;
}

const std::string& OutputFile::error() const noexcept { return state_->error; }

}  // namespace ptkit::base
