// What libipt's scripts take out of a perf.data file: NAME-aux-idxN.bin, the trace of one buffer, and
// NAME-sideband*.pevent, records without the attributes that say what stands in them.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "formats/files.h"
#include "formats/names.h"
#include "formats/perf_binaries.h"
#include "formats/perf_sideband.h"
#include "formats/readers.h"

namespace ptkit::formats {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAux = "-aux-idx";
constexpr std::string_view kSideband = "-sideband";
constexpr std::string_view kBin = ".bin";
constexpr std::string_view kEvents = ".pevent";
constexpr std::size_t kMostFiles = 65536;

struct Parts {
  std::string base;  // path of the perf.data that they were taken of
  std::map<std::int64_t, std::map<std::int64_t, std::string>> pieces;  // by buffer, then in order
  std::vector<std::string> sideband;
};

std::string name_of(const std::string& path) { return fs::path(path).filename().string(); }

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
  const std::string name = name_of(path);
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

// Of the base that the path is a stream of; of a folder, the first base there.
Parts parts_of(const std::string& path) {
  Parts parts;
  const bool folder = is_folder(path);
  if (!folder) parts.base = base_of(path);
  if (!folder && parts.base.empty()) return parts;
  const std::vector<std::string> files = files_in(folder ? path : parent_folder(path));
  for (const std::string& file : files) {
    if (const std::string base = base_of(file); !base.empty() && (parts.base.empty() || parts.base == base)) {
      parts.base = base;
      std::int64_t buffer = 0;
      std::int64_t piece = 0;
      const std::string name = name_of(file);
      read_index(std::string_view(name).substr(name.rfind(kAux) + kAux.size()), buffer, piece);
      parts.pieces[buffer][piece] = file;
    }
  }
  const std::string start = name_of(parts.base) + std::string(kSideband);
  const auto is_sideband = [&](const std::string& file) {
    const std::string name = name_of(file);
    return name.starts_with(start) && name.ends_with(kEvents);
  };
  std::copy_if(files.begin(), files.end(), std::back_inserter(parts.sideband), is_sideband);
  return parts;
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
    auto mapped = perf::read_mmap(record, perf::Fields(record.body));
    if (!mapped || !mapped->is_code) return;
    const perf::Event& event = mapped->event;
    const bool is_path = event.text.starts_with("/") && !event.text.starts_with("//");
    if (!is_path || event.pid <= 0 || event.size == 0) return;
    if (event.address + (event.size - 1) < event.address) return;
    mappings_.push_back(std::move(mapped->event));
  }

  void add_code() {
    std::set<std::int64_t> pids;
    for (const perf::Event& event : mappings_) pids.insert(event.pid);
    if (pids.size() > 1) {
      bundle_.warnings.push_back(
          path_ + ": code of " + std::to_string(pids.size()) +
          " processes was mapped, and who ran when stands in perf.data alone: open that "
          "file, or give the code as images.");
      return;
    }
    perf::Binaries binaries(bundle_, {}, options_.binaries);
    for (const perf::Event& event : mappings_) {
      trace::CodeRegion region;
      region.address = event.address;
      region.size = event.size;
      region.file_offset = event.file_offset;
      region.file = binaries.find(event.text, event.build_id);
      perf::map_contents(region, bundle_.files[static_cast<std::size_t>(region.file)].contents);
      bundle_.code.push_back(std::move(region));
    }
    for (trace::Stream& stream : bundle_.streams) stream.pid = pids.empty() ? trace::kNoId : *pids.begin();
    for (const std::string& problem : binaries.problems()) bundle_.warnings.push_back(problem);
  }

  std::string path_;
  const OpenOptions& options_;
  trace::TraceBundle bundle_;
  std::vector<perf::Event> mappings_;
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
