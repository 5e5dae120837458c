#include "formats/perf_export/output.h"

#include <filesystem>
#include <utility>

#include "base/file_path.h"
#include "formats/common/files.h"

namespace ptkit::formats::perf {

namespace {

constexpr std::size_t kMostUnwritten = std::size_t{1} << 16U;  // records are small: one write for many

}  // namespace

Output::Output(std::string path, base::OutputFile file) : path_(std::move(path)), file_(std::move(file)) {}

base::Result<Output> Output::create(const std::string& path) {
  auto created = base::OutputFile::create(path);
  if (!created.ok()) return created.failure();
  return Output(path, std::move(created.value()));
}

void Output::fail() {
  if (!failure_)
    failure_ = base::Failure{base::Status::IO_ERROR, 0, path_ + ": cannot write: " + file_.error()};
}

void Output::flush() {
  if (!failure_ && !file_.write(unwritten_)) fail();
  unwritten_.clear();
}

void Output::put(base::Bytes bytes) {
  if (failure_) return;
  size_ += bytes.size();
  if (unwritten_.size() + bytes.size() > kMostUnwritten) flush();
  if (bytes.size() <= kMostUnwritten) {
    unwritten_.insert(unwritten_.end(), bytes.begin(), bytes.end());
  } else if (!failure_ && !file_.write(bytes)) {
    fail();
  }
}

void Output::put_at(std::uint64_t offset, base::Bytes bytes) {
  flush();
  if (!failure_ && !file_.write_at(offset, bytes)) fail();
}

void Output::skip_to(std::uint64_t offset) {
  if (offset <= size_) return;
  flush();
  if (failure_) return;
  if (!file_.cut(offset)) return fail();
  size_ = offset;
}

std::optional<base::Failure> Output::keep() {
  flush();
  if (!failure_ && !file_.close(base::sudo_caller())) fail();
  if (!failure_) failure_ = file_.name();
  return failure_;
}

base::Result<base::NewFolder> create_folder(const std::string& path, const std::string& sign) {
  const std::string plain = without_slashes(path);
  std::error_code error;
  if (std::filesystem::is_directory(base::to_path(plain), error) &&
      !std::filesystem::exists(base::to_path(join(plain, sign)), error)) {
    return base::Failure{base::Status::IO_ERROR, 0,
                         plain + ": the folder exists and was not written by ptkit; choose another path"};
  }
  return base::NewFolder::create(plain);
}

}  // namespace ptkit::formats::perf
