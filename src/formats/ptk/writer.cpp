#include "formats/ptk/writer.h"

#include <algorithm>
#include <chrono>

#include "base/fields.h"
#include "formats/ptk/json.h"
#include "formats/ptk/redact.h"

namespace ptkit::formats {

namespace {

constexpr std::size_t kDataChunkBytes = std::size_t{1} << 20U;
constexpr std::size_t kDebugChunkBytes = std::size_t{16} << 20U;
constexpr std::size_t kPendingBytes = std::size_t{16} << 20U;  // limit of buffered bytes of all streams
constexpr std::size_t kCodeChunkBytes = std::size_t{1} << 18U;
constexpr std::size_t kSidebandChunkBytes = std::size_t{1} << 16U;
constexpr std::size_t kSwitchesPerChunk = 100'000;

std::string dump(const Json& value) { return value.dump(-1, ' ', false, Json::error_handler_t::replace); }

base::Bytes as_bytes(const std::string& text) {
  return {reinterpret_cast<const std::uint8_t*>(text.data()), text.size()};
}

// CLOCK_REALTIME.
std::int64_t now_ns() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  return std::chrono::duration_cast<std::chrono::nanoseconds>(now).count();
}

}  // namespace

base::Result<PtkWriter> PtkWriter::create(const std::string& path, const PtkOptions& options) {
  auto file = ptk::ChunkFile::create(path, options.naming, options.owner);
  if (!file.ok()) return file.failure();
  PtkWriter writer(std::move(file.value()), options);
  if (options.redact) writer.chunk(ptk::ChunkType::META, 0, dump({{"redacted", true}}));
  return writer;
}

void PtkWriter::chunk(ptk::ChunkType type, std::uint32_t id, const std::string& text) {
  file_.append(type, id, 0, as_bytes(text));
}

void PtkWriter::info(const RecordingInfo& info) {
  Json object = {{"backend", info.backend},
                 {"command", info.command},
                 {"machine", info.machine},
                 {"begin_ns", info.begin_ns}};
  if (info.end_ns != 0) object["end_ns"] = info.end_ns;
  if (info.exit_status) object["exit_status"] = *info.exit_status;
  if (info.instructions != 0) object["instructions"] = info.instructions;
  if (info.clocks) {
    object["clocks_tsc"] = info.clocks->tsc;
    object["clocks_monotonic_ns"] = info.clocks->monotonic_ns;
    object["clocks_realtime_ns"] = info.clocks->realtime_ns;
  }
  chunk(ptk::ChunkType::META, 0, dump(options_.redact ? ptk::redacted_meta(object) : object));
}

void PtkWriter::configuration(const trace::Configuration& configuration) {
  chunk(ptk::ChunkType::META, 0, dump(ptk::to_json(configuration)));
}

void PtkWriter::metadata(const std::string& json_object) {
  if (!options_.redact) return chunk(ptk::ChunkType::META, 0, json_object);
  chunk(ptk::ChunkType::META, 0, dump(ptk::redacted_meta(Json::parse(json_object, nullptr, false))));
}

void PtkWriter::warning(const std::string& text) {
  if (options_.redact && !ptk::names_no_path(text)) return;
  chunk(ptk::ChunkType::META, 0, dump({{"warnings", Json::array({text})}}));
}

void PtkWriter::space(trace::SpaceId id, const trace::Space& space) {
  chunk(ptk::ChunkType::SPACE, id, dump(ptk::to_json(id, space)));
}

void PtkWriter::stream(std::uint32_t id, const trace::Stream& stream) {
  const Json object = ptk::to_json(id, options_.redact ? ptk::redacted(id, stream) : stream);
  chunk(ptk::ChunkType::STREAM, id, dump(object));
}

void PtkWriter::switch_offsets(std::uint32_t id, const trace::Stream& stream) {
  const std::span<const trace::Switch> all(stream.switches);
  std::uint64_t lost = 0;  // bytes that take up offsets in the file
  auto loss = stream.losses.begin();
  for (std::size_t begin = 0; begin < all.size(); begin += kSwitchesPerChunk) {
    const auto part = all.subspan(begin, std::min(kSwitchesPerChunk, all.size() - begin));
    std::vector<trace::Switch> some(part.begin(), part.end());
    for (trace::Switch& one : some) {
      for (; loss != stream.losses.end() && loss->offset <= one.offset; ++loss) lost += loss->lost_bytes;
      one.offset += lost;
    }
    chunk(ptk::ChunkType::STREAM, id, dump(ptk::switch_offsets_to_json(some)));
  }
  chunk(ptk::ChunkType::STREAM, id, dump(ptk::end_of_switch_offsets()));
}

void PtkWriter::data(std::uint32_t stream, base::Bytes bytes) {
  StreamBuffer& buffer = streams_[stream];
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(bytes.size(), kDataChunkBytes - buffer.pending.size()));
    buffer.pending.insert(buffer.pending.end(), part.begin(), part.end());
    pending_bytes_ += part.size();
    bytes = bytes.subspan(part.size());
    if (buffer.pending.size() == kDataChunkBytes) flush_stream(stream, buffer);
    if (pending_bytes_ > kPendingBytes) flush_largest_stream();
  }
}

void PtkWriter::loss(std::uint32_t stream, std::uint64_t bytes, base::Status cause) {
  StreamBuffer& buffer = streams_[stream];
  flush_stream(stream, buffer);
  buffer.written += bytes;
  const Json object = {{"losses", Json::array({ptk::to_json({buffer.written, cause, bytes})})}};
  chunk(ptk::ChunkType::STREAM, stream, dump(object));
}

void PtkWriter::file(std::uint32_t id, const trace::ImageFile& file) {
  put_file(id, options_.redact ? ptk::redacted(id, file) : file);
}

void PtkWriter::put_file(std::uint32_t id, const trace::ImageFile& file) {
  chunk(ptk::ChunkType::FILE, id, dump(ptk::to_json(id, file)));
  std::vector<std::uint8_t> symbols;
  for (const trace::SymbolEntry& symbol : file.symbols) {
    base::append_le(symbols, symbol.file_offset);
    base::append_le(symbols, symbol.size);
    base::append_le(symbols, static_cast<std::uint32_t>(symbol.name.size()));
    symbols.insert(symbols.end(), symbol.name.begin(), symbol.name.end());
    if (symbols.size() < kDataChunkBytes) continue;
    file_.append(ptk::ChunkType::SYMBOLS, id, 0, symbols);
    symbols.clear();
  }
  if (!symbols.empty()) file_.append(ptk::ChunkType::SYMBOLS, id, 0, symbols);
  // Readers leave out larger chunks. A table that large is of 16 million functions, or a million import
  // slots.
  const auto table = [&](ptk::ChunkType type, const std::vector<std::uint8_t>& bytes) {
    if (!bytes.empty() && bytes.size() <= ptk::kMaxPlainBytes) file_.append(type, id, 0, bytes);
  };
  table(ptk::ChunkType::UNWIND, file.unwind);
  table(ptk::ChunkType::IMPORTS, file.imports);
  const base::Bytes debug = file.debug.bytes();
  for (std::size_t at = 0; at < debug.size(); at += kDebugChunkBytes)
    file_.append(ptk::ChunkType::DEBUG, id, at,
                 debug.subspan(at, std::min(kDebugChunkBytes, debug.size() - at)));
}

void PtkWriter::code(const trace::CodeRegion& region) {
  // A region larger than a chunk, or with bytes for its first part only, is split into several records.
  const std::uint64_t present = std::min<std::uint64_t>(region.bytes.size(), region.size);
  for (std::uint64_t done = 0; done < region.size;) {
    const bool here = done < present;
    const std::uint64_t part =
        here ? std::min<std::uint64_t>(present - done, kDataChunkBytes) : region.size - done;
    code_record(region, done, part,
                (here ? std::uint32_t{ptk::CODE_PRESENT} : 0U) |
                    (region.shared ? std::uint32_t{ptk::CODE_SHARED} : 0U));
    if (here) {
      const auto bytes = region.bytes.bytes().subspan(done, part);
      code_.insert(code_.end(), bytes.begin(), bytes.end());
    }
    done += part;
    if (code_.size() >= kCodeChunkBytes) flush_code();
  }
}

void PtkWriter::code_end(const trace::CodeRegion& region, std::uint64_t tsc) {
  trace::CodeRegion end;
  end.space = region.space;
  end.address = region.address;
  end.tsc_from = tsc;
  code_record(end, 0, region.size, ptk::CODE_END);
  if (code_.size() >= kCodeChunkBytes) flush_code();
}

void PtkWriter::names(const trace::NameRange& range) {
  trace::CodeRegion region;
  region.space = range.space;
  region.address = range.address;
  region.file = range.file;
  region.file_offset = range.file_offset;
  region.tsc_from = range.tsc_from;
  region.tsc_to = range.tsc_to;
  code_record(region, 0, range.size,
              std::uint32_t{ptk::CODE_NAMES} | (range.is_module ? std::uint32_t{ptk::CODE_MODULE} : 0U));
  if (code_.size() >= kCodeChunkBytes) flush_code();
}

// The record of `size` bytes of a region from its byte `begin` on.
void PtkWriter::code_record(const trace::CodeRegion& region, std::uint64_t begin, std::uint64_t size,
                            std::uint32_t flags) {
  base::append_le(code_, region.address + begin);
  base::append_le(code_, region.tsc_from);
  base::append_le(code_, region.tsc_to);
  base::append_le(code_, region.file_offset + begin);
  base::append_le(code_, size);
  base::append_le(code_, region.file);
  base::append_le(code_, region.space);
  base::append_le(code_, flags);
  base::append_le(code_, std::uint32_t{0});
}

void PtkWriter::sideband(const trace::Sideband& record) {
  sideband_ += sideband_.empty() ? '[' : ',';
  sideband_ += dump(ptk::to_json(options_.redact ? ptk::redacted(record) : record));
  if (sideband_.size() >= kSidebandChunkBytes) flush_sideband();
}

void PtkWriter::flush_stream(std::uint32_t id, StreamBuffer& buffer) {
  if (buffer.pending.empty()) return;
  // Code is written before trace: trace that can be read can be decoded.
  flush_sideband();
  flush_code();
  file_.append(ptk::ChunkType::DATA, id, buffer.written, buffer.pending);
  buffer.written += buffer.pending.size();
  pending_bytes_ -= buffer.pending.size();
  buffer.pending.clear();
}

// Bounds the memory of many streams that are seldom written.
void PtkWriter::flush_largest_stream() {
  const auto largest = std::max_element(streams_.begin(), streams_.end(), [](const auto& a, const auto& b) {
    return a.second.pending.size() < b.second.pending.size();
  });
  flush_stream(largest->first, largest->second);
  largest->second.pending.shrink_to_fit();
}

void PtkWriter::flush_code() {
  if (!code_.empty()) file_.append(ptk::ChunkType::CODE, 0, 0, code_);
  code_.clear();
}

void PtkWriter::flush_sideband() {
  if (!sideband_.empty()) chunk(ptk::ChunkType::SIDEBAND, 0, sideband_ + "]");
  sideband_.clear();
}

void PtkWriter::flush() {
  flush_sideband();
  flush_code();
  for (auto& [id, buffer] : streams_) {
    flush_stream(id, buffer);
    buffer.pending.shrink_to_fit();  // most threads write less from now on
  }
  if (file_.size() == flushed_size_) return;
  // If this is the file's last chunk, it holds the time until which the file is complete.
  chunk(ptk::ChunkType::META, 0, dump({{"flushed_ns", now_ns()}}));
  flushed_size_ = file_.size();
}

base::Result<std::uint64_t> PtkWriter::finish() {
  flush();
  return file_.finish(dump({{"failed", file_.reason()}, {"failed_ns", now_ns()}}));
}

}  // namespace ptkit::formats
