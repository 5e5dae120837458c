#include "formats/perf_export/output.h"

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "formats/common/files.h"

namespace ptkit::formats::perf {

using base::cannot_write;

Output::Output(std::string path, base::NewFile unnamed, std::FILE* file)
    : path_(std::move(path)), unnamed_(std::move(unnamed)), file_(file) {}

base::Result<Output> Output::create(const std::string& path) {
  auto created = base::NewFile::create(path);
  if (!created.ok()) return created.failure();
  base::Fd descriptor = created.value().release();
  std::FILE* const file = ::fdopen(descriptor.get(), "wb");
  if (file == nullptr) return cannot_write(path, "create", errno);
  static_cast<void>(descriptor.release());
  return Output(path, std::move(created.value()), file);
}

void Output::fail(const char* what) {
  if (!failure_) failure_ = cannot_write(path_, what, errno);
}

void Output::put(base::Bytes bytes) {
  if (failure_) return;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) return fail("write");
  size_ += bytes.size();
}

void Output::put_at(std::uint64_t offset, base::Bytes bytes) {
  if (failure_) return;
  const bool there = ::fseeko(file_.get(), static_cast<::off_t>(offset), SEEK_SET) == 0;
  if (!there || std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size() ||
      ::fseeko(file_.get(), static_cast<::off_t>(size_), SEEK_SET) != 0)
    fail("write");
}

void Output::skip_to(std::uint64_t offset) {
  if (failure_ || offset <= size_) return;
  if (::fseeko(file_.get(), static_cast<::off_t>(offset), SEEK_SET) != 0) return fail("write");
  size_ = offset;
}

std::optional<base::Failure> Output::keep() {
  if (!failure_) base::set_owner(::fileno(file_.get()), base::sudo_caller());
  // Some file systems report a full disk only when the file is closed.
  if (!failure_ && std::fclose(file_.release()) != 0) fail("write");
  if (!failure_) failure_ = unnamed_.rename();
  return failure_;
}

base::Result<base::NewFolder> create_folder(const std::string& path, const std::string& sign) {
  const std::string plain = without_slashes(path);
  std::error_code error;
  if (std::filesystem::is_directory(plain, error) && !std::filesystem::exists(plain + "/" + sign, error)) {
    return base::Failure{base::Status::IO_ERROR, 0,
                         plain + ": the folder exists and was not written by ptkit; choose another path"};
  }
  return base::NewFolder::create(plain);
}

}  // namespace ptkit::formats::perf
