#include "formats/ptk_writer.h"

#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "formats/ptk_json.h"
#include "image/elf.h"

namespace ptkit::formats {

namespace {

constexpr std::size_t kDataChunkBytes = std::size_t{1} << 20U;
constexpr std::size_t kCodeChunkBytes = std::size_t{1} << 18U;
constexpr std::size_t kSidebandChunkBytes = std::size_t{1} << 16U;
constexpr std::size_t kSmallBytes = 128;  // not worth packing
constexpr int kPackLevel = 3;

std::vector<std::uint8_t> pack(base::Bytes plain) {
  std::vector<std::uint8_t> packed(ZSTD_compressBound(plain.size()));
  const std::size_t size =
      ZSTD_compress(packed.data(), packed.size(), plain.data(), plain.size(), kPackLevel);
  packed.resize(ZSTD_isError(size) != 0 ? 0 : size);
  return packed;
}

std::string dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

base::Bytes as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

}  // namespace

base::Result<PtkWriter> PtkWriter::create(const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "wbe");
  if (file == nullptr) {
    return base::Failure{base::Status::IO_ERROR, 0, path + ": cannot create: " + std::strerror(errno)};
  }
  PtkWriter writer(path, file);
  std::vector<std::uint8_t> header(ptk::kMagic.begin(), ptk::kMagic.end());
  ptk::append_le(header, ptk::kMajor);
  ptk::append_le(header, ptk::kMinor);
  ptk::append_le(header, std::uint32_t{0});
  writer.put(header);
  return writer;
}

void PtkWriter::put(base::Bytes bytes) {
  if (failure_ || bytes.empty()) return;
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_.get()) != bytes.size()) fail("cannot write");
  offset_ += bytes.size();
}

void PtkWriter::fail(const char* what) {
  if (!failure_)
    failure_ =
        base::Failure{base::Status::IO_ERROR, offset_, path_ + ": " + what + ": " + std::strerror(errno)};
}

void PtkWriter::chunk(ptk::ChunkType type, std::uint32_t id, std::uint64_t place, base::Bytes payload) {
  ptk::IndexEntry entry;
  entry.offset = offset_;
  ptk::ChunkHeader& header = entry.header;
  header.type = static_cast<std::uint32_t>(type);
  header.id = id;
  header.place = place;
  header.plain_size = payload.size();
  std::vector<std::uint8_t> packed;
  if (payload.size() >= kSmallBytes) packed = pack(payload);
  if (!packed.empty() && packed.size() < payload.size()) {
    header.flags = ptk::ZSTD;
    payload = packed;
  }
  header.stored_size = payload.size();
  header.payload_check = ptk::crc32c(payload);
  std::vector<std::uint8_t> bytes;
  ptk::append_header(bytes, header);
  put(bytes);
  put(payload);
  const std::vector<std::uint8_t> padding(ptk::padded(payload.size()) - payload.size());
  put(padding);
  index_.push_back(entry);
}

void PtkWriter::chunk(ptk::ChunkType type, std::uint32_t id, const std::string& text) {
  chunk(type, id, 0, as_bytes(text));
}

void PtkWriter::info(const RecordingInfo& info) {
  Json object = {{"backend", info.backend},
                 {"command", info.command},
                 {"machine", info.machine},
                 {"begin_ns", info.begin_ns}};
  if (info.end_ns != 0) object["end_ns"] = info.end_ns;
  if (info.exit_status) object["exit_status"] = *info.exit_status;
  if (info.instructions != 0) object["instructions"] = info.instructions;
  chunk(ptk::ChunkType::META, 0, dump(object));
}

void PtkWriter::configuration(const trace::Configuration& configuration) {
  chunk(ptk::ChunkType::META, 0, dump(ptk::to_json(configuration)));
}

void PtkWriter::metadata(const std::string& json_object) { chunk(ptk::ChunkType::META, 0, json_object); }

void PtkWriter::space(trace::SpaceId id, const trace::Space& space) {
  chunk(ptk::ChunkType::SPACE, id, dump(ptk::to_json(id, space)));
}

void PtkWriter::stream(std::uint32_t id, const trace::Stream& stream) {
  chunk(ptk::ChunkType::STREAM, id, dump(ptk::to_json(id, stream)));
}

void PtkWriter::data(std::uint32_t stream, base::Bytes bytes) {
  StreamBuffer& buffer = streams_[stream];
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), kDataChunkBytes - buffer.pending.size()));
    buffer.pending.insert(buffer.pending.end(), part.begin(), part.end());
    bytes = bytes.subspan(part.size());
    if (buffer.pending.size() == kDataChunkBytes) flush_stream(stream, buffer);
  }
}

void PtkWriter::file(std::uint32_t id, const trace::ImageFile& file) {
  chunk(ptk::ChunkType::FILE, id, dump(ptk::to_json(id, file)));
  std::vector<std::uint8_t> symbols;
  for (const trace::SymbolEntry& symbol : file.symbols) {
    ptk::append_le(symbols, symbol.file_offset);
    ptk::append_le(symbols, symbol.size);
    ptk::append_le(symbols, static_cast<std::uint32_t>(symbol.name.size()));
    symbols.insert(symbols.end(), symbol.name.begin(), symbol.name.end());
    if (symbols.size() < kDataChunkBytes) continue;
    chunk(ptk::ChunkType::SYMBOLS, id, 0, symbols);
    symbols.clear();
  }
  if (!symbols.empty()) chunk(ptk::ChunkType::SYMBOLS, id, 0, symbols);
}

void PtkWriter::code(const trace::CodeRegion& region) {
  // What is larger than a chunk goes out in parts, and so does what has bytes for its first part only.
  const std::uint64_t present = std::min<std::uint64_t>(region.bytes.size(), region.size);
  for (std::uint64_t done = 0; done < region.size;) {
    const bool here = done < present;
    const std::uint64_t part =
        here ? std::min<std::uint64_t>(present - done, kDataChunkBytes) : region.size - done;
    ptk::append_le(code_, region.address + done);
    ptk::append_le(code_, region.tsc_from);
    ptk::append_le(code_, region.tsc_to);
    ptk::append_le(code_, region.file_offset + done);
    ptk::append_le(code_, part);
    ptk::append_le(code_, region.file);
    ptk::append_le(code_, region.space);
    ptk::append_le(code_, here ? std::uint32_t{ptk::CODE_PRESENT} : std::uint32_t{0});
    ptk::append_le(code_, std::uint32_t{0});
    if (here) {
      const auto bytes = region.bytes.bytes().subspan(done, part);
      code_.insert(code_.end(), bytes.begin(), bytes.end());
    }
    done += part;
    if (code_.size() >= kCodeChunkBytes) flush_code();
  }
}

void PtkWriter::sideband(const trace::Sideband& record) {
  sideband_ += sideband_.empty() ? '[' : ',';
  sideband_ += dump(ptk::to_json(record));
  if (sideband_.size() >= kSidebandChunkBytes) flush_sideband();
}

void PtkWriter::flush_stream(std::uint32_t id, StreamBuffer& buffer) {
  if (buffer.pending.empty()) return;
  chunk(ptk::ChunkType::DATA, id, buffer.written, buffer.pending);
  buffer.written += buffer.pending.size();
  buffer.pending.clear();
}

void PtkWriter::flush_code() {
  if (!code_.empty()) chunk(ptk::ChunkType::CODE, 0, 0, code_);
  code_.clear();
}

void PtkWriter::flush_sideband() {
  if (!sideband_.empty()) chunk(ptk::ChunkType::SIDEBAND, 0, sideband_ + "]");
  sideband_.clear();
}

void PtkWriter::flush() {
  // Code before data: what can be read can be decoded.
  flush_sideband();
  flush_code();
  for (auto& [id, buffer] : streams_) flush_stream(id, buffer);
  if (!failure_ && std::fflush(file_.get()) != 0) fail("cannot write");
}

base::Result<std::uint64_t> PtkWriter::finish() {
  flush();
  std::vector<std::uint8_t> entries;
  for (const ptk::IndexEntry& entry : index_) ptk::append_index_entry(entries, entry);
  const std::uint64_t index_offset = offset_;
  chunk(ptk::ChunkType::INDEX, 0, 0, entries);
  std::vector<std::uint8_t> trailer(ptk::kTrailerMagic.begin(), ptk::kTrailerMagic.end());
  ptk::append_le(trailer, index_offset);
  put(trailer);
  if (!failure_ && std::fflush(file_.get()) != 0) fail("cannot write");
  file_.reset();
  if (failure_) return *failure_;
  return offset_;
}

namespace {

void save_files(const trace::TraceBundle& bundle, PtkWriter& writer) {
  for (std::size_t i = 0; i < bundle.files.size(); ++i) {
    trace::ImageFile file{bundle.files[i].path, bundle.files[i].build_id, {}, bundle.files[i].symbols};
    if (file.symbols.empty()) file.symbols = image::read_symbols(bundle.files[i].contents.bytes());
    writer.file(static_cast<std::uint32_t>(i), file);
  }
}

void save_threads(const trace::TraceBundle& bundle, PtkWriter& writer) {
  for (const trace::Thread& thread : bundle.threads) {
    const bool known =
        std::any_of(bundle.sideband.begin(), bundle.sideband.end(), [&](const trace::Sideband& record) {
          return record.kind == trace::SidebandKind::THREAD && record.tid == thread.tid &&
                 record.text == thread.name;
        });
    if (known) continue;
    trace::Sideband record;
    record.kind = trace::SidebandKind::THREAD;
    record.pid = thread.pid;
    record.tid = thread.tid;
    record.text = thread.name;
    writer.sideband(record);
  }
}

}  // namespace

base::Result<std::uint64_t> save_ptk(const trace::TraceBundle& bundle, const std::string& path) {
  auto created = PtkWriter::create(path);
  if (!created.ok()) return created.failure();
  PtkWriter& writer = created.value();
  writer.configuration(bundle.configuration);
  if (!bundle.metadata.empty()) writer.metadata(bundle.metadata);
  for (std::size_t i = 1; i < bundle.spaces.size(); ++i)
    writer.space(static_cast<trace::SpaceId>(i), bundle.spaces[i]);
  save_files(bundle, writer);
  for (const trace::CodeRegion& region : bundle.code) writer.code(region);
  save_threads(bundle, writer);
  for (const trace::Sideband& record : bundle.sideband) writer.sideband(record);
  for (std::size_t i = 0; i < bundle.streams.size(); ++i) {
    writer.stream(static_cast<std::uint32_t>(i), bundle.streams[i]);
    writer.data(static_cast<std::uint32_t>(i), bundle.streams[i].data.bytes());
  }
  return writer.finish();
}

}  // namespace ptkit::formats
