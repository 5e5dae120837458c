#include "base/system/unpacked_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <mutex>
#include <utility>

#include "base/posix/unnamed_file.h"

namespace ptkit::base {
namespace {

class File final : public UnpackedFile {
 public:
  std::uint64_t add(std::uint64_t bytes) override {
    const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
    const std::scoped_lock lock(mutex_);
    const std::uint64_t offset = size_;
    size_ += (bytes + page - 1) / page * page;
    return offset;
  }

  std::optional<Failure> reserve(std::uint64_t offset, std::uint64_t bytes) override {
    const std::scoped_lock lock(mutex_);
    if (!file_) {
      auto created = UnnamedFile::create();
      if (!created.ok()) return created.failure();
      file_ = std::move(created.value());
    }
    return file_->reserve(offset, bytes);
  }

  bool show(std::uint64_t offset, const ReservedMemory& memory) const noexcept override {
    // Private pages show the file until they are written to.
    const std::span<std::uint8_t> bytes = memory.bytes();
    return ::mmap(bytes.data(), bytes.size(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE | MAP_FIXED,
                  file_->descriptor(), static_cast<::off_t>(offset)) != MAP_FAILED;
  }

  bool write(std::uint64_t offset, Bytes bytes) const noexcept override {
    return file_->write(offset, bytes);
  }

 private:
  std::mutex mutex_;
  std::uint64_t size_ = 0;
  std::optional<UnnamedFile> file_;
};

}  // namespace

std::shared_ptr<UnpackedFile> UnpackedFile::create() { return std::make_shared<File>(); }

}  // namespace ptkit::base
