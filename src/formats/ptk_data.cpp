#include "formats/ptk_data.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <new>

#include "formats/piecewise.h"
#include "formats/ptk_chunks.h"

namespace ptkit::formats::ptk {

namespace {

// Bytes that cannot be had any more read as this one, which begins no packet: an error follows, and decoding
// goes on at the next PSB.
constexpr std::uint8_t kNoPacket = 0xd9;

std::vector<std::size_t> begins_of(const std::vector<DataPiece>& pieces) {
  std::vector<std::size_t> begins;
  begins.reserve(pieces.size());
  for (const DataPiece& piece : pieces) begins.push_back(piece.begin);
  return begins;
}

class StreamData final : public PiecewiseData {
 public:
  StreamData(std::shared_ptr<const OpenFile> file, std::vector<DataPiece> pieces, std::size_t size)
      : PiecewiseData(begins_of(pieces), size), file_(std::move(file)), pieces_(std::move(pieces)) {}

  [[nodiscard]] std::optional<trace::TraceBuffer> again() const override {
    return buffer_of(std::make_shared<StreamData>(file_, pieces_, bytes().size()));
  }

 private:
  void make(std::size_t piece, std::span<std::uint8_t> out) noexcept override {
    if (!try_make(pieces_[piece], out)) std::fill(out.begin(), out.end(), kNoPacket);
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
};

}  // namespace

base::Result<std::shared_ptr<const OpenFile>> OpenFile::open(const std::string& path) {
  auto file = base::RegularFile::open(path);
  if (!file.ok()) return file.failure();
  return std::make_shared<const OpenFile>(std::move(file.value()));
}

bool OpenFile::read(std::uint64_t offset, std::span<std::uint8_t> out) const noexcept {
  if (const auto* const file = std::get_if<base::RegularFile>(&bytes_))
    return file->read(offset, out) == out.size();
  const base::Bytes bytes = std::get<trace::TraceBuffer>(bytes_).bytes();
  if (offset > bytes.size() || out.size() > bytes.size() - offset) return false;
  const base::Bytes found = bytes.subspan(static_cast<std::size_t>(offset), out.size());
  std::copy(found.begin(), found.end(), out.begin());
  return true;
}

base::Result<trace::TraceBuffer> make_stream_data(std::shared_ptr<const OpenFile> file,
                                                  std::vector<DataPiece> pieces, std::size_t size) {
  if (size == 0) return trace::TraceBuffer{};
  if (auto data = buffer_of(std::make_shared<StreamData>(std::move(file), std::move(pieces), size)))
    return std::move(*data);
  return base::Failure{base::Status::IO_ERROR, 0,
                       "no room for a stream of " + std::to_string(size) + " bytes: " + std::strerror(errno)};
}

}  // namespace ptkit::formats::ptk
