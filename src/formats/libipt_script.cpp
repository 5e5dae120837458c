// What libipt's scripts take out of a perf.data file: NAME-aux-idxN.bin, the trace of one buffer, and
// NAME-sideband*.pevent, records without the attributes that say what stands in them.
#include <algorithm>
#include <filesystem>
#include <map>
#include <set>

#include "formats/files.h"
#include "formats/names.h"
#include "formats/perf_binaries.h"
#include "formats/perf_record.h"
#include "formats/readers.h"

namespace ptkit::formats {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAux = "-aux-idx";
constexpr std::string_view kSideband = "-sideband";
constexpr std::string_view kBin = ".bin";
constexpr std::string_view kEvents = ".pevent";
constexpr std::size_t kMostFiles = 65536;
constexpr std::size_t kBuildIdBytes = 20;  // MMAP2: this behind its length and padding, or device and inode
constexpr std::size_t kDeviceBytes = 24;
constexpr std::size_t kProtectionBytes = 8;

struct Parts {
  std::string base;  // path of the perf.data that they were taken of
  std::map<std::int64_t, std::map<std::int64_t, std::string>> pieces;  // by buffer, then in order
  std::vector<std::string> sideband;
};

// "3.bin" and "3.7.bin".
bool read_index(std::string_view rest, std::int64_t& buffer, std::int64_t& piece) {
  const auto dot = rest.find('.');
  const auto first = number_in_name(std::string(rest.substr(0, dot)), "");
  if (!first || dot == std::string_view::npos) return false;
  buffer = *first;
  piece = -1;
  if (rest.substr(dot) == kBin) return true;
  const auto second = number_in_name(std::string(rest.substr(dot + 1)), "", kBin);
  if (second) piece = *second;
  return second.has_value();
}

// The base of a path that is one of the trace files, or nothing.
std::string base_of(const std::string& path) {
  const std::string name = fs::path(path).filename().string();
  const auto at = name.rfind(kAux);
  std::int64_t buffer = 0;
  std::int64_t piece = 0;
  if (at == std::string::npos || at == 0) return {};
  if (!read_index(std::string_view(name).substr(at + kAux.size()), buffer, piece)) return {};
  return join(parent_folder(path), name.substr(0, at));
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (auto at = fs::directory_iterator(folder, ignored);
       at != fs::directory_iterator() && files.size() < kMostFiles; at.increment(ignored))
    files.push_back(at->path().string());
  std::sort(files.begin(), files.end());
  return files;
}

// A folder: of the first base there.
Parts parts_of(const std::string& path) {
  Parts parts;
  const bool folder = is_folder(path);
  if (!folder) parts.base = base_of(path);
  for (const std::string& file : files_in(folder ? path : parent_folder(path))) {
    if (const std::string base = base_of(file); !base.empty() && (parts.base.empty() || parts.base == base)) {
      parts.base = base;
      std::int64_t buffer = 0;
      std::int64_t piece = 0;
      const std::string name = fs::path(file).filename().string();
      read_index(std::string_view(name).substr(name.rfind(kAux) + kAux.size()), buffer, piece);
      parts.pieces[buffer][piece] = file;
    }
  }
  for (const std::string& file : files_in(folder ? path : parent_folder(path))) {
    const std::string start = fs::path(parts.base).filename().string() + std::string(kSideband);
    const std::string name = fs::path(file).filename().string();
    if (!parts.base.empty() && name.starts_with(start) && name.ends_with(kEvents))
      parts.sideband.push_back(file);
  }
  return parts;
}

std::string hex(base::Bytes bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += kDigits[byte >> 4U];
    text += kDigits[byte & 15U];
  }
  return text;
}

bool sniff(const std::string& path) {
  return is_folder(path) ? !parts_of(path).pieces.empty() : is_file(path) && !base_of(path).empty();
}

class Loader {
 public:
  Loader(const std::string& path, const OpenOptions& options) : path_(path), options_(options) {}

  base::Result<trace::TraceBundle> load(const Parts& parts) {
    for (const auto& [buffer, pieces] : parts.pieces) {
      if (const auto failure = add_stream(buffer, pieces)) return *failure;
    }
    if (bundle_.streams.empty()) return bad_file(path_, "all of its streams are empty");
    for (const std::string& file : parts.sideband) read_sideband(file);
    add_code();
    return std::move(bundle_);
  }

 private:
  struct Mapping {
    std::int64_t pid = 0;
    trace::CodeRegion region;
    std::string file;
    std::string build_id;
  };

  // Pieces of a snapshot each: what lies between them was not saved.
  std::optional<base::Failure> add_stream(std::int64_t buffer,
                                          const std::map<std::int64_t, std::string>& pieces) {
    trace::Stream stream;
    stream.name = "idx " + std::to_string(buffer);
    std::vector<std::uint8_t> joined;
    for (const auto& [piece, file] : pieces) {
      auto data = trace::TraceBuffer::map_file(file);
      if (!data.ok()) return data.failure();
      if (pieces.size() == 1) {
        stream.data = std::move(data.value());
        break;
      }
      if (piece > pieces.begin()->first)
        stream.losses.push_back({joined.size(), base::Status::RING_WRAPPED, 0});
      joined.insert(joined.end(), data.value().bytes().begin(), data.value().bytes().end());
    }
    if (pieces.size() > 1) stream.data = trace::TraceBuffer::from_vector(std::move(joined));
    if (stream.data.size() != 0) bundle_.streams.push_back(std::move(stream));
    return std::nullopt;
  }

  void read_sideband(const std::string& file) {
    const auto data = trace::TraceBuffer::map_file(file);
    if (!data.ok()) return;
    const auto each = [&](const perf::Record& record) {
      if (record.type == perf::MMAP || record.type == perf::MMAP2) read_mapping(record);
      return true;
    };
    const auto walked = perf::walk(data.value().bytes(), 0, true, each);
    if (walked.damaged || walked.end != data.value().size()) {
      bundle_.warnings.push_back(file + ": no perf record at byte " + std::to_string(walked.end) +
                                 "; mappings after it are not known.");
    }
  }

  // Fields that do not depend on the attributes: those in front.
  void read_mapping(const perf::Record& record) {
    if ((record.misc & perf::kMiscMmapData) != 0) return;
    perf::Fields fields(record.body);
    Mapping mapping;
    mapping.pid = fields.id();
    fields.skip(4);
    mapping.region.address = fields.u64();
    mapping.region.size = fields.u64();
    mapping.region.file_offset = fields.u64();
    if (record.type == perf::MMAP2) {
      if ((record.misc & perf::kMiscMmapBuildId) != 0) {
        const auto size = std::min<std::size_t>(fields.take<1>(), kBuildIdBytes);
        fields.skip(3);
        mapping.build_id = hex(fields.take_bytes(kBuildIdBytes).first(fields.ok() ? size : 0));
      } else {
        fields.skip(kDeviceBytes);
      }
      fields.skip(kProtectionBytes);
    }
    mapping.file = fields.text();
    const bool is_path = mapping.file.starts_with("/") && !mapping.file.starts_with("//");
    const trace::CodeRegion& region = mapping.region;
    if (!fields.ok() || !is_path || mapping.pid <= 0 || region.size == 0) return;
    if (region.address + (region.size - 1) < region.address) return;
    mappings_.push_back(std::move(mapping));
  }

  void add_code() {
    std::set<std::int64_t> pids;
    for (const Mapping& mapping : mappings_) pids.insert(mapping.pid);
    if (pids.size() > 1) {
      bundle_.warnings.push_back(
          path_ + ": code of " + std::to_string(pids.size()) +
          " processes was mapped, and who ran when stands in perf.data alone: open that "
          "file, or give the code as images.");
      return;
    }
    perf::Binaries binaries(bundle_, {}, options_.binaries);
    for (Mapping& mapping : mappings_) {
      trace::CodeRegion& region = mapping.region;
      region.file = binaries.find(mapping.file, mapping.build_id);
      const trace::TraceBuffer& contents = bundle_.files[static_cast<std::size_t>(region.file)].contents;
      const std::uint64_t left =
          contents.size() - std::min<std::uint64_t>(region.file_offset, contents.size());
      if (left != 0) {
        region.size = std::min(region.size, left);
        region.bytes = contents.slice(static_cast<std::size_t>(region.file_offset),
                                      static_cast<std::size_t>(region.size));
      }
      bundle_.code.push_back(region);
    }
    for (trace::Stream& stream : bundle_.streams) stream.pid = pids.empty() ? trace::kNoId : *pids.begin();
    for (const std::string& problem : binaries.problems()) bundle_.warnings.push_back(problem);
  }

  std::string path_;
  const OpenOptions& options_;
  trace::TraceBundle bundle_;
  std::vector<Mapping> mappings_;
};

base::Result<trace::TraceBundle> read(const std::string& path, const OpenOptions& options) {
  const Parts parts = parts_of(path);
  if (parts.pieces.empty()) return bad_file(path, "expected files NAME-aux-idx0.bin, ... (libipt's scripts)");
  if (is_file(parts.base) && kPerfDataFormat.sniff(parts.base)) {
    auto whole = kPerfDataFormat.read(parts.base, options);
    if (whole.ok()) {
      whole.value().warnings.push_back(
          path + ": " + parts.base +
          ", which this was taken of, is there and was read instead: it says more.");
      return whole;
    }
  }
  return Loader(path, options).load(parts);
}

}  // namespace

const Format kLibiptScriptFormat{"libipt-script", "NAME-aux-idxN.bin of libipt's scripts for perf.data",
                                 &sniff, &read};

}  // namespace ptkit::formats
