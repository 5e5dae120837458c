#include "formats/ptk/stream.h"

#include <algorithm>
#include <new>

#include "formats/common/lazy_bytes.h"
#include "formats/ptk/chunks.h"

namespace ptkit::formats::ptk {
namespace {

// Bytes that can no longer be read are replaced by this byte, which begins no packet. The decoder reports an
// error and goes on at the next PSB.
constexpr std::uint8_t kNoPacket = 0xd9;

std::vector<std::size_t> begins_of(const std::vector<DataChunk>& chunks) {
  std::vector<std::size_t> begins;
  begins.reserve(chunks.size());
  for (const DataChunk& chunk : chunks) begins.push_back(chunk.begin);
  return begins;
}

class StreamData final : public LazyBytes {
 public:
  StreamData(std::shared_ptr<const OpenFile> file, std::vector<DataChunk> chunks, std::size_t size,
             std::shared_ptr<base::UnpackedFile> unpacked)
      : LazyBytes(begins_of(chunks), size, std::move(unpacked)),
        file_(std::move(file)),
        chunks_(std::move(chunks)) {}

  [[nodiscard]] std::optional<trace::TraceBuffer> again() const override {
    return buffer_of(std::make_shared<StreamData>(file_, chunks_, bytes().size(), nullptr));
  }

 private:
  void produce(std::size_t chunk, std::span<std::uint8_t> out) noexcept override {
    if (!try_unpack(chunks_[chunk], out)) std::fill(out.begin(), out.end(), kNoPacket);
  }

  bool try_unpack(const DataChunk& chunk, std::span<std::uint8_t> plain) const noexcept {
    const auto size = static_cast<std::size_t>(chunk.header.stored_size);
    const std::unique_ptr<std::uint8_t[]> memory(new (std::nothrow) std::uint8_t[size]);
    if (memory == nullptr) return false;
    const std::span<std::uint8_t> stored(memory.get(), size);
    // The file may have been overwritten since the bundle was opened.
    return file_->read(chunk.file_offset, stored) && crc32c(stored) == chunk.header.payload_check &&
           unpack(chunk.header, stored, plain);
  }

  std::shared_ptr<const OpenFile> file_;
  std::vector<DataChunk> chunks_;
};

}  // namespace

bool StreamAssembler::add(const IndexEntry& entry) {
  const std::uint64_t begin = entry.header.position;
  const std::uint64_t size = entry.header.plain_size;
  if (begin < position_ || size > trace::kTscMax - begin) return false;
  if (begin != position_ || parts_.empty()) parts_.push_back({begin, size_});
  if (size != 0) chunks_.push_back({size_, entry.offset + kChunkHeaderBytes, entry.header});
  size_ += static_cast<std::size_t>(size);
  position_ = begin + size;
  return true;
}

void StreamAssembler::add_lost(std::uint64_t begin, std::uint64_t size) {
  if (size <= trace::kTscMax - begin) end_ = std::max(end_, begin + size);
}

std::uint64_t StreamAssembler::data_offset(std::uint64_t position) const {
  const auto after =
      std::upper_bound(parts_.begin(), parts_.end(), position,
                       [](std::uint64_t value, const Part& part) { return value < part.begin; });
  const std::uint64_t limit = after == parts_.end() ? size_ : after->offset;
  if (after == parts_.begin()) return limit;
  const Part& part = *(after - 1);
  return std::min(part.offset + (position - part.begin), limit);
}

std::vector<StreamAssembler::Hole> StreamAssembler::holes() const {
  std::vector<Hole> found;
  std::uint64_t end = 0;  // end of the part before
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    if (parts_[i].begin != end) found.push_back({end, parts_[i].begin, parts_[i].begin - end});
    const std::uint64_t next = i + 1 < parts_.size() ? parts_[i + 1].offset : size_;
    end = parts_[i].begin + (next - parts_[i].offset);
  }
  if (end_ > end) found.push_back({end, end_, end_ - end});
  return found;
}

base::Result<std::vector<StreamAssembler::Hole>> StreamAssembler::assemble(
    trace::Stream& stream, const std::shared_ptr<const OpenFile>& file,
    const std::shared_ptr<base::UnpackedFile>& unpacked) {
  auto data = make_stream_data(file, std::move(chunks_), size_, unpacked);
  if (!data.ok()) return data.failure();
  stream.data = std::move(data.value());
  const auto by_offset = [](const trace::KnownLoss& a, const trace::KnownLoss& b) {
    return a.offset < b.offset;
  };
  std::stable_sort(stream.losses.begin(), stream.losses.end(), by_offset);
  std::vector<Hole> unexplained;
  std::vector<trace::KnownLoss> added;
  auto loss = stream.losses.begin();
  for (Hole& hole : holes()) {
    for (; loss != stream.losses.end() && loss->offset <= hole.end; ++loss) {
      if (loss->offset > hole.begin) hole.unexplained -= std::min(hole.unexplained, loss->lost_bytes);
    }
    if (hole.unexplained == 0) continue;
    added.push_back({data_offset(hole.end), base::Status::BAD_FILE, hole.unexplained});
    unexplained.push_back(hole);
  }
  for (trace::KnownLoss& one : stream.losses) one.offset = data_offset(one.offset);
  stream.losses.insert(stream.losses.end(), added.begin(), added.end());
  std::stable_sort(stream.losses.begin(), stream.losses.end(), by_offset);
  return unexplained;
}

base::Result<std::shared_ptr<const OpenFile>> OpenFile::open(const std::string& path) {
  auto file = base::FileReader::open(path);
  if (!file.ok()) return file.failure();
  return std::make_shared<const OpenFile>(std::move(file.value()));
}

bool OpenFile::read(std::uint64_t offset, std::span<std::uint8_t> out) const noexcept {
  if (const auto* const file = std::get_if<base::FileReader>(&bytes_))
    return file->read(offset, out) == out.size();
  const base::Bytes bytes = std::get<trace::TraceBuffer>(bytes_).bytes();
  if (offset > bytes.size() || out.size() > bytes.size() - offset) return false;
  const base::Bytes found = bytes.subspan(static_cast<std::size_t>(offset), out.size());
  std::copy(found.begin(), found.end(), out.begin());
  return true;
}

base::Result<trace::TraceBuffer> make_stream_data(std::shared_ptr<const OpenFile> file,
                                                  std::vector<DataChunk> chunks, std::size_t size,
                                                  std::shared_ptr<base::UnpackedFile> unpacked) {
  if (size == 0) return trace::TraceBuffer{};
  if (auto data = buffer_of(
          std::make_shared<StreamData>(std::move(file), std::move(chunks), size, std::move(unpacked))))
    return std::move(*data);
  return base::Failure{base::Status::NO_MEMORY, 0,
                       "cannot reserve memory for a stream of " + std::to_string(size) +
                           " bytes: " + base::ReservedMemory::error()};
}

}  // namespace ptkit::formats::ptk
