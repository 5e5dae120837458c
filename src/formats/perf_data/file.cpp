#include "formats/perf_data/file.h"

#include <algorithm>
#include <array>
#include <functional>

#include "formats/common/files.h"
#include "formats/common/numbered_files.h"
#include "formats/perf_data/unpack.h"
#include "trace/warning_codes.h"

namespace ptkit::formats::perf {

using trace::WarningCode;

namespace {

constexpr std::uint64_t kMagic = 0x32454c4946524550;         // "PERFILE2"
constexpr std::uint64_t kSwappedMagic = 0x50455246494c4532;  // of a big-endian machine
constexpr std::uint64_t kHeaderBytes = 104;
constexpr std::uint64_t kPipeHeaderBytes = 16;
constexpr std::size_t kBitmapAt = 72;
constexpr std::uint64_t kMostAttrs = 4096;

std::string feature_name(unsigned number) {
  // HEADER_... of tools/perf/util/header.h that ptkit reads.
  static constexpr std::array<std::pair<unsigned, const char*>, 11> kNames{{
      {FEATURE_TRACING_DATA, "TRACING_DATA"},
      {FEATURE_BUILD_ID, "BUILD_ID"},
      {FEATURE_HOSTNAME, "HOSTNAME"},
      {FEATURE_OSRELEASE, "OSRELEASE"},
      {FEATURE_VERSION, "VERSION"},
      {FEATURE_CPUID, "CPUID"},
      {FEATURE_CMDLINE, "CMDLINE"},
      {FEATURE_EVENT_DESC, "EVENT_DESC"},
      {FEATURE_AUXTRACE, "AUXTRACE"},
      {FEATURE_BPF_PROG_INFO, "BPF_PROG_INFO"},
      {FEATURE_PMU_CAPS, "PMU_CAPS"},
  }};
  const auto found = std::ranges::find(kNames, number, &std::pair<unsigned, const char*>::first);
  return found != kNames.end() ? found->second : "number " + std::to_string(number);
}

// `next`: offset of the next known record, or 0.
trace::Warning warn_of_damage(const Walked& walked, std::uint64_t offset, std::uint64_t next) {
  const std::uint64_t position = offset + walked.end;
  if (!walked.damaged) return warn(WarningCode::PERF_RECORD_CUT, position);
  if (next == 0) return warn(WarningCode::PERF_RECORD_DAMAGED, position);
  return warn(WarningCode::PERF_RECORDS_DAMAGED, position, next);
}

// Returns a COMPRESSED record with the zstd data as its body. COMPRESSED2 is padded.
Record packed_part(Record record) {
  if (record.type != COMPRESSED2) return record;
  Fields fields(record.body);
  const std::uint64_t size = fields.u64();
  record.body = fields.take_bytes(static_cast<std::size_t>(std::min<std::uint64_t>(size, fields.left())));
  return record;
}

}  // namespace

File::File(std::string path, trace::TraceBuffer contents)
    : path_(std::move(path)), contents_(std::move(contents)), bytes_(contents_.bytes()) {}

base::Result<File> File::open(const std::string& path, const std::string& folder) {
  auto contents = trace::TraceBuffer::map_file(path);
  if (!contents.ok()) return contents.failure();
  auto opened = File::of(path, std::move(contents.value()));
  if (!opened.ok() || folder.empty()) return opened;
  File& file = opened.value();
  for (const auto& [number, name] : numbered_files(folder, "data.")) {
    auto other = trace::TraceBuffer::map_file(name);
    if (!other.ok()) return other.failure();
    file.others_.emplace(name, std::move(other.value()));
  }
  return opened;
}

base::Result<File> File::of(const std::string& path, trace::TraceBuffer contents) {
  File file(path, std::move(contents));
  if (auto failure = file.read_header()) return *failure;
  return file;
}

void File::add_warning(const trace::Warning& warning) { warnings.push_back(warning.at(path_)); }

base::Bytes File::section(std::uint64_t offset, std::uint64_t size) const {
  if (offset > bytes_.size() || size > bytes_.size() - offset) return {};
  return bytes_.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
}

std::optional<base::Failure> File::read_header() {
  Fields fields(bytes_);
  const std::uint64_t magic = fields.u64();
  if (magic == kSwappedMagic) {
    return base::Failure{base::Status::UNSUPPORTED, 0,
                         path_ + " comes from a big-endian machine, which has no Intel PT"};
  }
  if (magic != kMagic) {
    return bad_file(path_, "expected a perf.data file (PERFILE2), found " + describe(bytes_));
  }
  const std::uint64_t size = fields.u64();
  if (size == kPipeHeaderBytes) {
    is_pipe_ = true;
    records_at_ = kPipeHeaderBytes;
    records_ = bytes_.subspan(kPipeHeaderBytes);
    take_from_pipe();
    return std::nullopt;
  }
  const std::uint64_t attr_bytes = fields.u64();
  const std::uint64_t attrs_at = fields.u64();
  const std::uint64_t attrs_size = fields.u64();
  records_at_ = fields.u64();
  std::uint64_t records_size = fields.u64();
  if (bytes_.size() < kHeaderBytes || size < kHeaderBytes) return bad_file(path_, "the header is cut");
  if (records_at_ > bytes_.size()) {
    return bad_file(path_, "the header says that the data section is after the end of the file", 40);
  }
  const std::uint64_t most = bytes_.size() - records_at_;
  if (records_size == 0 && most > 0) {
    add_warning(warn(WarningCode::PERF_NOT_FINISHED));
    records_size = most;
  } else if (records_size > most) {
    add_warning(warn(WarningCode::PERF_CUT, records_size - most));
    records_size = most;
    is_cut_ = true;
  } else {
    read_features(records_at_ + records_size, bytes_.subspan(kBitmapAt, 32));
  }
  records_ = section(records_at_, records_size);
  read_attrs(attrs_at, attrs_size, attr_bytes);
  return std::nullopt;
}

void File::read_attrs(std::uint64_t offset, std::uint64_t size, std::uint64_t entry) {
  const base::Bytes all = section(offset, size);
  if (entry < 80 || all.size() != size || size / entry > kMostAttrs)
    return add_warning(warn(WarningCode::PERF_ATTRS_INVALID));
  for (std::size_t at = 0; all.size() - at >= entry; at += static_cast<std::size_t>(entry)) {
    const base::Bytes one = all.subspan(at, static_cast<std::size_t>(entry));
    auto attr = parse_attr(one);
    if (!attr) continue;
    Fields ids_section(one, static_cast<std::size_t>(entry) - 16);
    const std::uint64_t ids_at = ids_section.u64();
    const base::Bytes ids = section(ids_at, ids_section.u64());
    // Id lists may overlap. Their sum is limited by the file's size.
    if (ids.size() / 8 > bytes_.size() / 8 - ids_) return add_warning(warn(WarningCode::PERF_IDS_INVALID));
    ids_ += ids.size() / 8;
    for (Fields id(ids); id.left() >= 8;) attr->ids.push_back(id.u64());
    attrs_.push_back(std::move(*attr));
  }
}

void File::read_features(std::uint64_t offset, base::Bytes bitmap) {
  std::uint64_t at = offset;
  std::string missing;
  for (unsigned number = 0; number < bitmap.size() * 8; ++number) {
    if ((bitmap[number / 8] >> number % 8 & 1) == 0) continue;
    const base::Bytes entry = section(at, 16);
    if (entry.empty()) return add_warning(warn(WarningCode::PERF_FEATURES_CUT));
    at += 16;
    Fields fields(entry);
    const std::uint64_t begin = fields.u64();
    const std::uint64_t size = fields.u64();
    features_[number] = section(begin, size);
    if (features_[number].size() != size) {
      missing += missing.empty() ? "" : ", ";
      missing += feature_name(number);
    }
  }
  if (!missing.empty()) add_warning(warn(WarningCode::PERF_FEATURES_MISSING, missing));
}

// perf writes header data of a pipe as records before the first event.
void File::take_from_pipe() {
  static_cast<void>(walk(records_, records_at_, true, [this](const Record& record) {
    static_cast<void>(take_header_record(record));
    return true;
  }));
}

bool File::take_header_record(const Record& record) {
  if (record.type == HEADER_FEATURE) {
    Fields fields(record.body);
    const std::uint64_t number = fields.u64();
    if (!fields.ok() || number >= 256) return false;
    features_[static_cast<unsigned>(number)] = fields.take_bytes(fields.left());
    return true;
  }
  if (record.type == HEADER_TRACING_DATA) features_.try_emplace(FEATURE_TRACING_DATA, record.payload);
  if (record.type != HEADER_ATTR || attrs_.size() == kMostAttrs) return false;
  auto attr = parse_attr(record.body);
  if (!attr) return false;
  const std::size_t size = base::load_le<4>(record.body.data() + 4);
  if (size <= record.body.size()) {
    for (Fields id(record.body, size); id.left() >= 8;) attr->ids.push_back(id.u64());
  }
  attrs_.push_back(std::move(*attr));
  return true;
}

void File::for_each(const Each& each, const Missing& missing) {
  walk_one(records_, records_at_, path_, indexed_auxtrace(), each, missing);
  if (is_cut_) missing();
  for (const auto& [path, contents] : others_) walk_one(contents.bytes(), 0, path, {}, each, missing);
}

// Returns offsets of AUXTRACE records from the index in the feature AUXTRACE. Wrong entries are left out.
std::vector<std::size_t> File::indexed_auxtrace() const {
  std::vector<std::size_t> found;
  Fields fields(is_pipe_ ? base::Bytes{} : feature(FEATURE_AUXTRACE));
  for (std::uint64_t count = fields.u64(); count > 0 && fields.left() >= 16; --count) {
    const std::uint64_t offset = fields.u64();
    const std::uint64_t size = fields.u64();
    if (offset < records_at_ || offset - records_at_ >= records_.size()) continue;
    const auto at = static_cast<std::size_t>(offset - records_at_);
    Fields header(records_, at);
    const std::uint32_t type = header.u32();
    header.skip(2);
    if (header.u16() == size && type == AUXTRACE && at != 0) found.push_back(at);
  }
  std::ranges::sort(found);
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

// After damage, reading resumes at the next AUXTRACE record of the index.
void File::walk_one(base::Bytes records, std::uint64_t offset, const std::string& path,
                    const std::vector<std::size_t>& auxtrace, const Each& each, const Missing& missing) {
  Unpacker unpacker;
  std::uint64_t damages = 0;
  const auto say = [&](const trace::Warning& warning) {
    if (++damages == 1) warnings.push_back(warning.at(path));
    missing();
  };
  const auto take = [&](const Record& record) {
    const bool is_packed = record.type == COMPRESSED || record.type == COMPRESSED2;
    if (!is_packed) each(record);
    if (is_packed) {
      if (const auto wrong = unpacker.unpack(packed_part(record), each)) say(*wrong);
    }
    return true;
  };
  for (std::size_t begin = 0, i = 0; i <= auxtrace.size(); begin = auxtrace[i++]) {
    const bool last = i == auxtrace.size();
    const std::size_t size = (last ? records.size() : auxtrace[i]) - begin;
    const Walked walked = walk(records.subspan(begin, size), offset + begin, is_pipe_, take);
    if (walked.end != size) {
      unpacker.stop();
      say(warn_of_damage(walked, offset + begin, last ? 0 : offset + auxtrace[i]));
    }
    if (last) break;
  }
  if (damages > 1) warnings.push_back(warn(WarningCode::PERF_DAMAGE_REPEATED, damages - 1).at(path));
  if (const auto left = unpacker.left()) {
    warnings.push_back(left->at(path));
    missing();
  }
}

std::uint64_t File::size() const noexcept {
  std::uint64_t size = bytes_.size();
  for (const auto& [path, contents] : others_) size += contents.size();
  return size;
}

base::Bytes File::feature(unsigned number) const {
  const auto found = features_.find(number);
  return found == features_.end() ? base::Bytes{} : found->second;
}

std::string File::feature_text(unsigned number) const {
  Fields fields(feature(number));
  const std::uint32_t size = fields.u32();
  return Fields(fields.take_bytes(std::min<std::size_t>(size, fields.left()))).text();
}

std::vector<std::string> File::command() const {
  std::vector<std::string> words;
  Fields fields(feature(FEATURE_CMDLINE));
  for (std::uint32_t count = fields.u32(); count > 0 && fields.left() >= 4; --count) {
    const std::uint32_t size = fields.u32();
    words.push_back(Fields(fields.take_bytes(std::min<std::size_t>(size, fields.left()))).text());
  }
  return words;
}

trace::TraceBuffer File::part(base::Bytes bytes) const {
  const std::less<> before;
  const auto is_in = [&](const trace::TraceBuffer& file) {
    const base::Bytes all = file.bytes();
    return !before(bytes.data(), all.data()) && !before(all.data() + all.size(), bytes.data() + bytes.size());
  };
  const auto slice_of = [&](const trace::TraceBuffer& file) {
    return file.slice(static_cast<std::size_t>(bytes.data() - file.bytes().data()), bytes.size());
  };
  if (is_in(contents_)) return slice_of(contents_);
  for (const auto& [path, other] : others_) {
    if (is_in(other)) return slice_of(other);
  }
  return trace::TraceBuffer::from_vector({bytes.begin(), bytes.end()});
}

}  // namespace ptkit::formats::perf
