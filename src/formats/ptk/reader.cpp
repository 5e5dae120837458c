// Reads ptkit's own bundles: one file with streams, code, symbols, clock and sideband
// (docs/bundle-format.md).
#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "code/bounds/table.h"
#include "code/image/files/imports.h"
#include "formats/common/files.h"
#include "formats/common/readers.h"
#include "formats/ptk/chunks.h"
#include "formats/ptk/code_store.h"
#include "formats/ptk/end_state.h"
#include "formats/ptk/json.h"
#include "formats/ptk/stream.h"
#include "trace/warning_codes.h"

namespace ptkit::formats {

namespace {

using ptk::ChunkType;
using ptk::IndexEntry;
using trace::WarningCode;

bool sniff_ptk_bytes(base::Bytes bytes) {
  return bytes.size() >= ptk::kMagic.size() &&
         std::equal(ptk::kMagic.begin(), ptk::kMagic.end(), bytes.begin());
}

bool sniff_ptk(const std::string& path) {
  const std::string head = first_bytes(path, ptk::kMagic.size());
  return sniff_ptk_bytes({reinterpret_cast<const std::uint8_t*>(head.data()), head.size()});
}

// Whether traces of so many bytes are unpacked into a file: more than a GiB, or an eighth of the free memory.
bool is_large(std::uint64_t trace) {
  constexpr std::uint64_t kSmall = std::uint64_t{64} << 20U;
  constexpr std::uint64_t kLarge = std::uint64_t{1} << 30U;
  return trace > kLarge || (trace > kSmall && trace > base::memory_left().least().usable() / 8);
}

// Maps ids, which the writer chose freely, to indexes in the bundle, which are contiguous.
using Ids = std::map<std::uint32_t, std::size_t>;

class PtkReader {
 public:
  PtkReader(std::string path, base::Bytes file, std::shared_ptr<const ptk::OpenFile> open)
      : path_(std::move(path)), file_(file), open_(std::move(open)) {}

  base::Result<trace::TraceBundle> read() {
    auto list = ptk::list_chunks(path_, file_);
    if (!list.ok()) return list.failure();
    const auto& entries = list.value().entries;
    if (const auto failure =
            ptk::check_sizes(path_, file_.size(), entries, [] { return base::memory_left().least(); }))
      return *failure;
    for (trace::Warning& warning : list.value().warnings) add_warning(std::move(warning));
    for (const IndexEntry& entry : entries) {
      read_entry(entry);
      if (failure_) return *failure_;
    }
    if (!has_meta_)
      return bad_file(path_, "the bundle has no readable META chunk, which says how it was recorded");
    finish();
    if (failure_) return *failure_;
    warn_of_end(list.value().indexed);
    return std::move(bundle_);
  }

 private:
  void add_warning(trace::Warning warning) {
    warning.subject = path_;
    if (warned_.insert(warning.text()).second) bundle_.warnings.push_back(std::move(warning));
  }

  // The end of the recording matters most: its warnings come first.
  void warn_of_end(bool finished) {
    std::vector<trace::Warning> before;
    std::swap(before, bundle_.warnings);
    for (trace::Warning& warning : ptk::describe_end(meta_, bundle_, finished))
      add_warning(std::move(warning));
    bundle_.warnings.insert(bundle_.warnings.end(), before.begin(), before.end());
  }

  void read_entry(const IndexEntry& entry) {
    if (static_cast<ChunkType>(entry.header.type) == ChunkType::DATA) return add_data(entry);
    auto payload = ptk::read_chunk(file_, entry);
    const auto type = static_cast<ChunkType>(entry.header.type);
    if (!payload.ok()) {
      add_warning(warn(WarningCode::CHUNK_DAMAGED, payload.failure().detail));
      return;
    }
    const std::vector<std::uint8_t>& bytes = payload.value();
    switch (type) {
      case ChunkType::META:
        return read_json(entry, bytes, [this](const Json& json, auto root) { add_meta(json, root); });
      case ChunkType::STREAM:
        return read_json(entry, bytes, [&](const Json&, auto root) { add_stream(entry, root); });
      case ChunkType::SPACE:
        return read_json(entry, bytes, [&](const Json&, auto root) { add_space(entry, root); });
      case ChunkType::FILE:
        return read_json(entry, bytes, [&](const Json&, auto root) { add_file(entry, root); });
      case ChunkType::SIDEBAND:
        return read_json(entry, bytes, [this](const Json&, auto root) { add_sideband(root); });
      case ChunkType::CODE:
        return add_code(entry, bytes);
      case ChunkType::SYMBOLS:
        return add_symbols(entry, bytes);
      case ChunkType::UNWIND:
        return add_unwind(entry, bytes);
      case ChunkType::IMPORTS:
        return add_imports(entry, bytes);
      case ChunkType::DEBUG:
        return add_debug(entry, bytes);
      case ChunkType::DATA:
      case ChunkType::INDEX:
        return;
    }
    if (unknown_types_.insert(entry.header.type).second)
      add_warning(warn(WarningCode::CHUNK_TYPE_UNKNOWN, ptk::type_name(entry.header.type)));
  }

  template <typename Use>
  void read_json(const IndexEntry& entry, base::Bytes bytes, const Use& use) {
    const std::string where =
        path_ + ": " + ptk::type_name(entry.header.type) + " chunk at byte " + std::to_string(entry.offset);
    auto json = parse_json(where, bytes);
    if (!json.ok()) {
      failure_ = json.failure();
      return;
    }
    JsonReader reader(where);
    use(json.value(), reader.root(json.value()));
    if (reader.failure()) failure_ = reader.failure();
  }

  void add_meta(const Json& json, const JsonReader::Member& root) {
    root.expect_object();
    if (!json.is_object()) return;
    ptk::from_json(root, bundle_.configuration);
    ptk::check_recorder(root);
    const auto warnings = root["warnings"];
    for (std::size_t i = 0; warnings.present() && i < warnings.size(); ++i)
      add_warning(warn(WarningCode::RECORDED, warnings.at(i).text()));
    for (const auto& [name, value] : json.items()) {
      if (!value.is_null() && name != "warnings") meta_[name] = value;
    }
    has_meta_ = true;
  }

  void add_stream(const IndexEntry& entry, const JsonReader::Member& root) {
    root.expect_object();
    const auto [at, fresh] = streams_.try_emplace(entry.header.id, bundle_.streams.size());
    if (fresh) bundle_.streams.emplace_back();
    ptk::from_json(root, bundle_.streams[at->second]);
    ptk::from_json(root, switch_offsets_[entry.header.id]);
  }

  void add_space(const IndexEntry& entry, const JsonReader::Member& root) {
    root.expect_object();
    const auto [at, fresh] = spaces_.try_emplace(entry.header.id, bundle_.spaces.size());
    if (fresh) bundle_.spaces.emplace_back();
    ptk::from_json(root, bundle_.spaces[at->second]);
  }

  void add_file(const IndexEntry& entry, const JsonReader::Member& root) {
    root.expect_object();
    const auto [at, fresh] = files_.try_emplace(entry.header.id, bundle_.files.size());
    if (fresh) bundle_.files.emplace_back();
    ptk::from_json(root, bundle_.files[at->second]);
  }

  void add_sideband(const JsonReader::Member& root) {
    for (std::size_t i = 0; i < root.size(); ++i) {
      trace::Sideband record;
      if (ptk::from_json(root.at(i), record)) bundle_.sideband.push_back(std::move(record));
    }
  }

  // Checks a DATA chunk. It is unpacked lazily.
  void add_data(const IndexEntry& entry) {
    stored_.resize(static_cast<std::size_t>(entry.header.stored_size));
    const bool there = open_->read(entry.offset + ptk::kChunkHeaderBytes, stored_);
    const std::string fault = there ? ptk::find_fault(entry.header, stored_) : "cannot be read";
    if (!fault.empty()) {
      add_warning(warn(WarningCode::CHUNK_DAMAGED, ptk::describe_fault(entry, fault)));
      return parts_[entry.header.id].add_lost(entry.header.position, entry.header.plain_size);
    }
    if (parts_[entry.header.id].add(entry)) return;
    add_warning(warn(WarningCode::CHUNK_REPEATED, entry.offset, entry.header.id));
  }

  void add_code(const IndexEntry& entry, base::Bytes bytes) {
    const auto buffer = trace::TraceBuffer::from_vector({bytes.begin(), bytes.end()});
    std::size_t at = 0;
    while (bytes.size() - at >= ptk::kCodeRecordBytes) {
      const std::uint8_t* record = bytes.data() + at;
      trace::CodeRegion region;
      region.address = base::load_le<8>(record);
      region.tsc_from = base::load_le<8>(record + 8);
      region.tsc_to = base::load_le<8>(record + 16);
      region.file_offset = base::load_le<8>(record + 24);
      region.size = base::load_le<8>(record + 32);
      region.file = static_cast<std::int32_t>(base::load_le<4>(record + 40));
      region.space = static_cast<std::uint32_t>(base::load_le<4>(record + 44));
      const auto flags = base::load_le<4>(record + 48);
      const bool present = (flags & ptk::CODE_PRESENT) != 0;
      region.shared = (flags & ptk::CODE_SHARED) != 0;
      at += ptk::kCodeRecordBytes;
      if ((flags & ptk::CODE_NAMES) != 0) {
        bundle_.names.push_back({region.space, region.address, region.size, region.file, region.file_offset,
                                 region.tsc_from, region.tsc_to, (flags & ptk::CODE_MODULE) != 0});
        continue;
      }
      if (present) {
        if (region.size > bytes.size() - at) break;
        region.bytes = buffer.slice(at, region.size);
        at += region.size;
      }
      const bool fits = region.size != 0 && region.size - 1 <= ~region.address;
      const bool ends = (flags & ptk::CODE_END) != 0;
      if (fits) (ends ? code_ends_ : bundle_.code).push_back(std::move(region));
    }
    if (at != bytes.size()) warn_of_cut(entry);
  }

  void add_symbols(const IndexEntry& entry, base::Bytes bytes) {
    std::vector<trace::SymbolEntry>& symbols = symbols_[entry.header.id];
    std::size_t at = 0;
    while (bytes.size() - at >= ptk::kSymbolRecordBytes) {
      const std::uint8_t* record = bytes.data() + at;
      const std::size_t length = base::load_le<4>(record + 16);
      if (length > bytes.size() - at - ptk::kSymbolRecordBytes) break;
      const auto* name = reinterpret_cast<const char*>(record + ptk::kSymbolRecordBytes);
      symbols.push_back({std::string(name, length), base::load_le<8>(record), base::load_le<8>(record + 8)});
      at += ptk::kSymbolRecordBytes + length;
    }
    if (at != bytes.size()) warn_of_cut(entry);
  }

  void add_unwind(const IndexEntry& entry, const std::vector<std::uint8_t>& bytes) {
    constexpr std::uint64_t kAnyFile = std::numeric_limits<std::uint64_t>::max();
    if (!code::bounds::UnwindTable::decode(bytes, kAnyFile)) return warn_of_cut(entry);
    unwind_[entry.header.id] = bytes;
  }

  void add_imports(const IndexEntry& entry, const std::vector<std::uint8_t>& bytes) {
    if (!code::image::Imports::decode(bytes)) return warn_of_cut(entry);
    imports_[entry.header.id] = bytes;
  }

  // Without one of its chunks, the debug information ends there.
  void add_debug(const IndexEntry& entry, base::Bytes bytes) {
    std::vector<std::uint8_t>& all = debug_[entry.header.id];
    if (entry.header.position != all.size()) return warn_of_cut(entry);
    all.insert(all.end(), bytes.begin(), bytes.end());
  }

  void warn_of_cut(const IndexEntry& entry) {
    add_warning(warn(WarningCode::CHUNK_RECORD_CUT, ptk::type_name(entry.header.type), entry.offset));
  }

  // Joins data of several chunks and turns ids into indexes.
  void finish() {
    bundle_.metadata = meta_.dump(-1, ' ', false, Json::error_handler_t::replace);
    for (const auto& [id, at] : streams_)
      parts_.try_emplace(id);  // losses stand in streams without DATA, too
    std::uint64_t trace = 0;
    for (const auto& [id, parts] : parts_) trace += parts.size();
    if (is_large(trace)) unpacked_ = base::UnpackedFile::create();
    for (auto& [id, parts] : parts_) finish_stream(id, parts);
    for (auto& [id, offsets] : switch_offsets_) set_switch_offsets(id, offsets);
    for (trace::Stream& stream : bundle_.streams) {
      stream.space = space_index(stream.space);
      for (trace::Switch& one : stream.switches) one.space = space_index(one.space);
    }
    for (auto& [id, symbols] : symbols_) {
      if (const auto at = files_.find(id); at != files_.end())
        bundle_.files[at->second].symbols = std::move(symbols);
    }
    for (auto& [id, table] : unwind_) {
      if (const auto at = files_.find(id); at != files_.end())
        bundle_.files[at->second].unwind = std::move(table);
    }
    for (auto& [id, slots] : imports_) {
      if (const auto at = files_.find(id); at != files_.end())
        bundle_.files[at->second].imports = std::move(slots);
    }
    for (auto& [id, bytes] : debug_) {
      if (const auto at = files_.find(id); at != files_.end())
        bundle_.files[at->second].debug = trace::TraceBuffer::from_vector(std::move(bytes));
    }
    for (trace::CodeRegion& region : bundle_.code) {
      region.space = space_index(region.space);
      region.file = file_index(region.file);
    }
    for (trace::CodeRegion& end : code_ends_) end.space = space_index(end.space);
    ptk::end_code(bundle_.code, code_ends_);
    for (trace::NameRange& range : bundle_.names) {
      range.space = space_index(range.space);
      range.file = file_index(range.file);
    }
    std::erase_if(bundle_.names, [](const trace::NameRange& range) { return range.file < 0; });
    for (trace::Sideband& record : bundle_.sideband) record.file = file_index(record.file);
    // Recorders with several threads write records nearly in order of time.
    std::stable_sort(bundle_.sideband.begin(), bundle_.sideband.end(),
                     [](const trace::Sideband& a, const trace::Sideband& b) { return a.tsc < b.tsc; });
    ptk::share_code(bundle_.code);
    // Mappings without bytes give the addresses of a file's unsaved code. Saved bytes take precedence.
    std::stable_partition(bundle_.code.begin(), bundle_.code.end(),
                          [](const trace::CodeRegion& region) { return region.bytes.size() == 0; });
    name_threads();
    if (missing_references_ != 0) add_warning(warn(WarningCode::REFERENCES_DROPPED, missing_references_));
  }

  void finish_stream(std::uint32_t id, ptk::StreamAssembler& parts) {
    const auto [at, fresh] = streams_.try_emplace(id, bundle_.streams.size());
    if (fresh) {
      add_warning(warn(WarningCode::STREAM_NOT_DESCRIBED, id));
      bundle_.streams.emplace_back().name = "stream " + std::to_string(id);
    }
    const auto holes = parts.assemble(bundle_.streams[at->second], open_, unpacked_);
    if (!holes.ok()) {
      failure_ = base::Failure{holes.failure().status, 0, path_ + ": " + holes.failure().detail};
      return;
    }
    for (const auto& hole : holes.value())
      add_warning(warn(WarningCode::STREAM_BYTES_MISSING, hole.unexplained, id, hole.end));
  }

  // Switches by time in the same stream are older and less exact.
  void set_switch_offsets(std::uint32_t id, ptk::SwitchOffsets& offsets) {
    if (!offsets.whole) return;
    for (trace::Switch& one : offsets.switches) one.offset = parts_[id].data_offset(one.offset);
    trace::Stream& stream = bundle_.streams[streams_.at(id)];
    stream.switches = std::move(offsets.switches);
    stream.switches_by_offset = true;
  }

  trace::SpaceId space_index(std::uint32_t id) {
    if (id == trace::kAnySpace) return trace::kAnySpace;
    const auto at = spaces_.find(id);
    if (at == spaces_.end()) ++missing_references_;
    return at == spaces_.end() ? trace::kAnySpace : static_cast<trace::SpaceId>(at->second);
  }

  std::int32_t file_index(std::int32_t id) {
    if (id < 0) return -1;
    const auto at = files_.find(static_cast<std::uint32_t>(id));
    if (at == files_.end()) ++missing_references_;
    return at == files_.end() ? -1 : static_cast<std::int32_t>(at->second);
  }

  // A thread is shown with its last name.
  void name_threads() {
    std::map<std::int64_t, std::size_t> known;
    for (const trace::Sideband& record : bundle_.sideband) {
      if (record.kind != trace::SidebandKind::THREAD) continue;
      const auto [at, fresh] = known.try_emplace(record.tid, bundle_.threads.size());
      if (fresh) bundle_.threads.push_back({record.pid, record.tid, ""});
      if (!record.text.empty()) bundle_.threads[at->second].name = record.text;
    }
  }

  std::string path_;
  base::Bytes file_;
  std::shared_ptr<const ptk::OpenFile> open_;
  std::shared_ptr<base::UnpackedFile> unpacked_;  // null: streams are unpacked into memory
  std::vector<std::uint8_t> stored_;              // stored bytes of the current DATA chunk
  trace::TraceBundle bundle_;
  std::optional<base::Failure> failure_;
  Json meta_ = Json::object();
  bool has_meta_ = false;
  Ids streams_;
  Ids spaces_;
  Ids files_;
  std::map<std::uint32_t, ptk::StreamAssembler> parts_;
  std::map<std::uint32_t, ptk::SwitchOffsets> switch_offsets_;
  std::map<std::uint32_t, std::vector<trace::SymbolEntry>> symbols_;
  std::map<std::uint32_t, std::vector<std::uint8_t>> unwind_;
  std::map<std::uint32_t, std::vector<std::uint8_t>> imports_;
  std::map<std::uint32_t, std::vector<std::uint8_t>> debug_;
  std::vector<trace::CodeRegion> code_ends_;  // as end_code() takes them
  std::set<std::uint32_t> unknown_types_;
  std::set<std::string> warned_;
  std::size_t missing_references_ = 0;
};

base::Result<trace::TraceBundle> read_ptk(const std::string& path, const OpenOptions&) {
  auto file = trace::TraceBuffer::map_file(path);
  if (!file.ok()) return file.failure();
  auto open = ptk::OpenFile::open(path);
  if (!open.ok()) return open.failure();
  return PtkReader(path, file.value().bytes(), std::move(open.value())).read();
}

base::Result<trace::TraceBundle> read_ptk_bytes(const std::string& name, const trace::TraceBuffer& bytes,
                                                const OpenOptions&) {
  return PtkReader(name, bytes.bytes(), std::make_shared<const ptk::OpenFile>(bytes)).read();
}

}  // namespace

const Format kPtkFormat{"ptk", "a ptkit bundle", &sniff_ptk, &read_ptk, &sniff_ptk_bytes, &read_ptk_bytes};

}  // namespace ptkit::formats
