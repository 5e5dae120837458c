#include "formats/ptk/file.h"

#include <zstd.h>

#include <algorithm>

#include "base/fields.h"

namespace ptkit::formats::ptk {

namespace {

constexpr std::size_t kSmallBytes = 128;  // smaller payloads are not packed
constexpr int kPackLevel = 1;             // docs/bundle-format.md has the measurements

}  // namespace

void ChunkFile::FreeContext::operator()(ZSTD_CCtx_s* context) const noexcept {
  static_cast<void>(ZSTD_freeCCtx(context));
}

ChunkFile::ChunkFile(std::string path, base::OutputFile file, const std::optional<base::Owner>& owner)
    : path_(std::move(path)), owner_(owner), file_(std::move(file)), packer_(ZSTD_createCCtx()) {}

base::Result<ChunkFile> ChunkFile::create(const std::string& path, Naming naming,
                                          const std::optional<base::Owner>& owner) {
  auto created = base::OutputFile::create(path);
  if (!created.ok()) return created.failure();
  ChunkFile file(path, std::move(created.value()), owner);
  std::vector<std::uint8_t> header(kMagic.begin(), kMagic.end());
  base::append_le(header, kMajor);
  base::append_le(header, kMinor);
  base::append_le(header, std::uint32_t{0});
  if (file.put(header)) {
    file.size_ = header.size();
    if (naming == Naming::AT_ONCE) file.name();
  } else {
    file.fail();
  }
  return file;
}

bool ChunkFile::put(base::Bytes bytes) { return file_.write(bytes); }

bool ChunkFile::put(ChunkType type, std::uint32_t id, std::uint64_t position, base::Bytes payload) {
  IndexEntry entry;
  entry.offset = size_;
  ChunkHeader& header = entry.header;
  header.type = static_cast<std::uint32_t>(type);
  header.id = id;
  header.position = position;
  header.plain_size = payload.size();
  header.stored_size = payload.size();
  const std::size_t bound = kChunkHeaderBytes + padded(ZSTD_compressBound(payload.size()));
  if (scratch_.size() < bound) scratch_.resize(bound);
  if (payload.size() >= kSmallBytes && packer_ != nullptr) {
    const std::size_t size =
        ZSTD_compressCCtx(packer_.get(), scratch_.data() + kChunkHeaderBytes,
                          scratch_.size() - kChunkHeaderBytes, payload.data(), payload.size(), kPackLevel);
    if (ZSTD_isError(size) == 0 && size < payload.size()) {
      header.flags = ZSTD;
      header.stored_size = size;
    }
  }
  const std::span<std::uint8_t> chunk =
      std::span(scratch_).first(kChunkHeaderBytes + padded(header.stored_size));
  std::uint8_t* stored = chunk.data() + kChunkHeaderBytes;
  if (header.flags == 0) std::copy(payload.begin(), payload.end(), stored);
  std::fill(stored + header.stored_size, chunk.data() + chunk.size(), std::uint8_t{0});
  header.payload_check = crc32c({stored, static_cast<std::size_t>(header.stored_size)});
  std::vector<std::uint8_t> head;
  head.reserve(kChunkHeaderBytes);
  append_header(head, header);
  std::copy(head.begin(), head.end(), scratch_.begin());
  if (!put(chunk)) return false;
  size_ += chunk.size();
  index_.push_back(entry);
  return true;
}

void ChunkFile::append(ChunkType type, std::uint32_t id, std::uint64_t position, base::Bytes payload) {
  if (!failure_ && !put(type, id, position, payload)) fail();
}

// Truncates the file after its last complete chunk.
void ChunkFile::fail() {
  if (!failure_) {
    reason_ = "cannot write: " + file_.error();
    failure_ = base::Failure{base::Status::IO_ERROR, size_, path_ + ": " + reason_};
  }
  file_.cut(size_);
}

void ChunkFile::name() {
  if (!failure_) failure_ = file_.name();
  named_ = true;
}

bool ChunkFile::put_index() {
  std::vector<std::uint8_t> entries;
  entries.reserve(index_.size() * kIndexEntryBytes);
  for (const IndexEntry& entry : index_) append_index_entry(entries, entry);
  const std::uint64_t index_offset = size_;
  if (!put(ChunkType::INDEX, 0, 0, entries)) return false;
  std::vector<std::uint8_t> trailer(kTrailerMagic.begin(), kTrailerMagic.end());
  base::append_le(trailer, index_offset);
  if (!put(trailer)) return false;
  size_ += trailer.size();
  return true;
}

base::Result<std::uint64_t> ChunkFile::finish(const std::string& failure_meta) {
  const base::Bytes failure_bytes{reinterpret_cast<const std::uint8_t*>(failure_meta.data()),
                                  failure_meta.size()};
  const std::uint64_t whole = size_;
  const bool written = !failure_ || put(ChunkType::META, 0, 0, failure_bytes);
  if (!written || !put_index()) {
    size_ = whole;
    fail();
  }
  if (!file_.close(owner_) && !failure_)
    failure_ = base::Failure{base::Status::IO_ERROR, size_, path_ + ": cannot write: " + file_.error()};
  if (!named_) name();
  if (failure_) return *failure_;
  return size_;
}

}  // namespace ptkit::formats::ptk
