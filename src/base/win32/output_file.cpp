#include "base/system/output_file.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>

#include "base/file_path.h"
#include "base/system/new_contents.h"
#include "base/win32/file_handle.h"

namespace ptkit::base {

namespace {

namespace fs = std::filesystem;

constexpr int kTries = 16;  // attempts if random names exist already

std::string last_error() { return std::system_category().message(static_cast<int>(::GetLastError())); }

}  // namespace

struct OutputFile::State {
  std::string shown;
  fs::path path;
  fs::path written;  // empty after name()
  HANDLE handle = INVALID_HANDLE_VALUE;
  std::string error;

  State() = default;
  State(const State&) = delete;
  State& operator=(const State&) = delete;
  ~State() {
    if (handle != INVALID_HANDLE_VALUE) ::CloseHandle(handle);
    if (!written.empty()) ::DeleteFileW(written.c_str());
  }

  bool seek(std::uint64_t offset, DWORD from) {
    LARGE_INTEGER position{};
    position.QuadPart = static_cast<LONGLONG>(offset);
    if (::SetFilePointerEx(handle, position, nullptr, from) != 0) return true;
    error = last_error();
    return false;
  }
};

std::optional<Failure> refused_output(const std::string& path) {
  constexpr DWORD kNotRegular =
      FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT | FILE_ATTRIBUTE_DEVICE;
  const DWORD earlier = ::GetFileAttributesW(to_path(path).c_str());
  if (!path.empty() && (earlier == INVALID_FILE_ATTRIBUTES || (earlier & kNotRegular) == 0)) return {};
  return Failure{Status::IO_ERROR, 0,
                 path + ": is no regular file, and only regular files are written; give another name"};
}

OutputFile::OutputFile(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
OutputFile::OutputFile(OutputFile&& other) noexcept = default;
OutputFile::~OutputFile() = default;

Result<OutputFile> OutputFile::create(const std::string& path) {
  auto state = std::make_unique<State>();
  state->shown = path;
  state->path = to_path(path);
  if (auto refused = refused_output(path)) return *refused;
  for (int i = 0; i < kTries && state->handle == INVALID_HANDLE_VALUE; ++i) {
    fs::path name = state->path.parent_path() / random_file_name();
    // It is renamed while it is open.
    state->handle = ::CreateFileW(name.c_str(), GENERIC_WRITE | DELETE, FILE_SHARE_READ | FILE_SHARE_DELETE,
                                  nullptr, CREATE_NEW, FILE_ATTRIBUTE_NORMAL, nullptr);
    if (state->handle != INVALID_HANDLE_VALUE)
      state->written = std::move(name);
    else if (::GetLastError() != ERROR_FILE_EXISTS)
      break;
  }
  if (state->handle == INVALID_HANDLE_VALUE) return last_failure(path, "create");
  return OutputFile(std::move(state));
}

bool OutputFile::write(Bytes bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 30U;
  while (!bytes.empty()) {
    DWORD written = 0;
    const auto part = static_cast<DWORD>(std::min(bytes.size(), kMost));
    if (::WriteFile(state_->handle, bytes.data(), part, &written, nullptr) == 0 || written == 0) {
      state_->error = last_error();
      return false;
    }
    bytes = bytes.subspan(written);
  }
  return true;
}

bool OutputFile::write_at(std::uint64_t offset, Bytes bytes) {
  return state_->seek(offset, FILE_BEGIN) && write(bytes) && state_->seek(0, FILE_END);
}

bool OutputFile::cut(std::uint64_t size) {
  if (!state_->seek(size, FILE_BEGIN)) return false;
  if (::SetEndOfFile(state_->handle) != 0) return true;
  state_->error = last_error();
  return false;
}

std::optional<Failure> OutputFile::name() {
  if (::MoveFileExW(state_->written.c_str(), state_->path.c_str(), MOVEFILE_REPLACE_EXISTING) == 0)
    return last_failure(state_->shown, "create");
  state_->written.clear();
  return std::nullopt;
}

bool OutputFile::close(const std::optional<Owner>& /*owner*/) {
  if (::CloseHandle(std::exchange(state_->handle, INVALID_HANDLE_VALUE)) != 0) return true;
  state_->error = last_error();
  return false;
}

const std::string& OutputFile::error() const noexcept { return state_->error; }

}  // namespace ptkit::base
