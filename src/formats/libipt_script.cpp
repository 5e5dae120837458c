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
#include "formats/perf_overlap.h"
#include "formats/perf_sideband.h"
#include "formats/piecewise.h"
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
  // Pieces are snapshots of a ring: what two of them have is taken once, and what lies between two that have
  // nothing in common was not saved.
  std::optional<base::Failure> add_stream(std::int64_t buffer,
                                          const std::map<std::int64_t, std::string>& pieces) {
    trace::Stream stream;
    stream.name = "idx " + std::to_string(buffer);
    std::vector<trace::TraceBuffer> parts;
    std::size_t size = 0;
    trace::TraceBuffer older;
    for (const auto& [piece, file] : pieces) {
      auto data = trace::TraceBuffer::map_file(file);
      if (!data.ok()) return data.failure();
      const trace::TraceBuffer whole = std::move(data.value());
      const auto overlap = parts.empty() ? std::nullopt : perf::find_overlap(older.bytes(), whole.bytes());
      if (overlap) {
        trace::TraceBuffer& before = parts.back();
        const std::size_t padding = std::min(before.size(), overlap->padding);
        before = before.slice(0, before.size() - padding);
        size -= padding;
      } else if (!parts.empty()) {
        stream.losses.push_back({size, base::Status::RING_WRAPPED, 0});
      }
      const std::size_t repeated = overlap ? overlap->repeated : 0;
      parts.push_back(whole.slice(repeated, whole.size() - repeated));
      size += parts.back().size();
      older = whole;
    }
    auto joined = join_parts(std::move(parts));
    if (!joined.ok()) return joined.failure();
    stream.data = std::move(joined.value());
    if (stream.data.size() != 0) bundle_.streams.push_back(std::move(stream));
    return std::nullopt;
  }

  void read_sideband(const std::string& file) {
    const auto data = trace::TraceBuffer::map_file(file);
    if (!data.ok()) return;
    ++files_;
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
    mappings_.push_back({std::move(mapped->event), files_});
  }

  // Files of several processors do not say which of two mappings came first: the later file's wins.
  void look_for_doubt() {
    std::vector<const Mapping*> sorted;
    for (const Mapping& one : mappings_) sorted.push_back(&one);
    const auto address = [](const Mapping* one) { return one->event.address; };
    std::ranges::stable_sort(sorted, {}, address);
    const Mapping* before = nullptr;  // the one that reaches farthest
    for (const Mapping* one : sorted) {
      const bool hides = before != nullptr && before->last() >= one->event.address;
      if (hides && before->file != one->file && before->differs(*one)) {
        bundle_.warnings.push_back(path_ + ": " + before->event.text + " and " + one->event.text +
                                   " were mapped to the same addresses, on different processors, and their "
                                   "times stand in perf.data alone: open that file, or code of the wrong one "
                                   "may be taken.");
        return;
      }
      if (before == nullptr || one->last() > before->last()) before = one;
    }
  }

  void add_code() {
    std::set<std::int64_t> pids;
    for (const Mapping& one : mappings_) pids.insert(one.event.pid);
    if (pids.size() > 1) {
      bundle_.warnings.push_back(
          path_ + ": code of " + std::to_string(pids.size()) +
          " processes was mapped, and who ran when stands in perf.data alone: open that "
          "file, or give the code as images.");
      return;
    }
    look_for_doubt();
    perf::Binaries binaries(bundle_, is_folder(path_) ? path_ : parent_folder(path_), {}, options_.binaries);
    for (const auto& [event, file] : mappings_) {
      trace::CodeRegion region;
      region.address = event.address;
      region.size = event.size;
      region.file_offset = event.file_offset;
      region.file = binaries.find(event.text, event.build_id);
      binaries.map_contents(region);
      bundle_.code.push_back(std::move(region));
    }
    for (trace::Stream& stream : bundle_.streams) stream.pid = pids.empty() ? trace::kNoId : *pids.begin();
    binaries.list_missing();
  }

  std::string path_;
  const OpenOptions& options_;
  trace::TraceBundle bundle_;
  struct Mapping {
    perf::Event event;
    std::size_t file = 0;  // that tells it
    [[nodiscard]] std::uint64_t last() const noexcept { return event.address + (event.size - 1); }
    [[nodiscard]] bool differs(const Mapping& other) const noexcept {
      return event.text != other.event.text ||
             event.address - event.file_offset != other.event.address - other.event.file_offset;
    }
  };
  std::vector<Mapping> mappings_;
  std::size_t files_ = 0;  // of sideband
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
