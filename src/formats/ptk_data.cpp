#include "formats/ptk_data.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <new>

#include "formats/ptk_chunks.h"

namespace ptkit::formats::ptk {

namespace {

// Bytes that cannot be had any more read as this one, which begins no packet: an error follows, and decoding
// goes on at the next PSB.
constexpr std::uint8_t kNoPacket = 0xd9;
constexpr std::size_t kHugePage = std::size_t{1} << 21U;

// Address space: memory is taken where it is written.
class Room {
 public:
  explicit Room(std::size_t size) : size_(size) {
    void* const memory =
        ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) return;
    memory_ = static_cast<std::uint8_t*>(memory);
    if (size >= kHugePage) static_cast<void>(::madvise(memory, size, MADV_HUGEPAGE));
  }
  ~Room() {
    if (memory_ != nullptr) ::munmap(memory_, size_);
  }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;

  [[nodiscard]] bool good() const noexcept { return memory_ != nullptr; }
  [[nodiscard]] std::span<std::uint8_t> bytes() const noexcept { return {memory_, size_}; }

 private:
  std::uint8_t* memory_ = nullptr;
  std::size_t size_;
};

class StreamData final : public trace::ByteSource {
 public:
  StreamData(std::shared_ptr<const OpenFile> file, std::vector<DataPiece> pieces, std::size_t size)
      : file_(std::move(file)),
        pieces_(std::move(pieces)),
        made_(pieces_.size()),
        missing_(pieces_.size()),
        room_(size) {}

  [[nodiscard]] bool good() const noexcept { return room_.good(); }
  [[nodiscard]] base::Bytes bytes() const noexcept { return room_.bytes(); }

  void need(std::size_t begin, std::size_t end) noexcept override {
    if (missing_.load(std::memory_order_acquire) == 0 || begin >= end) return;
    const auto behind = [](std::size_t offset, const DataPiece& piece) { return offset < piece.begin; };
    auto at = std::upper_bound(pieces_.begin(), pieces_.end(), begin, behind);
    const std::scoped_lock lock(mutex_);
    for (--at; at != pieces_.end() && at->begin < end; ++at) {
      const auto i = static_cast<std::size_t>(at - pieces_.begin());
      if (made_[i]) continue;
      make(*at);
      made_[i] = true;
      missing_.fetch_sub(1, std::memory_order_release);
    }
  }

 private:
  void make(const DataPiece& piece) const noexcept {
    const std::span<std::uint8_t> plain = room_.bytes().subspan(piece.begin, piece.header.plain_size);
    if (!try_make(piece, plain)) std::fill(plain.begin(), plain.end(), kNoPacket);
  }

  bool try_make(const DataPiece& piece, std::span<std::uint8_t> plain) const noexcept {
    const auto size = static_cast<std::size_t>(piece.header.stored_size);
    const std::unique_ptr<std::uint8_t[]> memory(new (std::nothrow) std::uint8_t[size]);
    if (memory == nullptr) return false;
    const std::span<std::uint8_t> stored(memory.get(), size);
    // What was sound when the bundle was opened may have been overwritten since.
    return file_->read(piece.place, stored) && crc32c(stored) == piece.header.payload_check &&
           unpack(piece.header, stored, plain);
  }

  std::shared_ptr<const OpenFile> file_;
  std::vector<DataPiece> pieces_;
  std::vector<bool> made_;
  std::atomic<std::size_t> missing_;
  std::mutex mutex_;
  Room room_;
};

}  // namespace

base::Result<std::shared_ptr<const OpenFile>> OpenFile::open(const std::string& path) {
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) return std::shared_ptr<const OpenFile>(new OpenFile(fd));
  return base::Failure{base::Status::IO_ERROR, 0, path + ": cannot open: " + std::strerror(errno)};
}

OpenFile::~OpenFile() { ::close(fd_); }

bool OpenFile::read(std::uint64_t offset, std::span<std::uint8_t> out) const noexcept {
  while (!out.empty()) {
    const ssize_t size = ::pread(fd_, out.data(), out.size(), static_cast<off_t>(offset));
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0) return false;
    out = out.subspan(static_cast<std::size_t>(size));
    offset += static_cast<std::uint64_t>(size);
  }
  return true;
}

base::Result<trace::TraceBuffer> make_stream_data(std::shared_ptr<const OpenFile> file,
                                                  std::vector<DataPiece> pieces, std::size_t size) {
  if (size == 0) return trace::TraceBuffer{};
  const auto data = std::make_shared<StreamData>(std::move(file), std::move(pieces), size);
  if (data->good()) return trace::TraceBuffer::from_source(data->bytes(), data);
  return base::Failure{base::Status::IO_ERROR, 0,
                       "no room for a stream of " + std::to_string(size) + " bytes: " + std::strerror(errno)};
}

}  // namespace ptkit::formats::ptk
