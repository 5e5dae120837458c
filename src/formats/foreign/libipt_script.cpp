// Files that libipt's scripts extract from perf.data: NAME-aux-idxN.bin has the trace of one AUX buffer,
// NAME-sideband*.pevent has records without their event attributes.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>

#include "base/file_path.h"
#include "formats/common/files.h"
#include "formats/common/lazy_bytes.h"
#include "formats/common/numbered_files.h"
#include "formats/common/readers.h"
#include "formats/mapped_files/binaries.h"
#include "formats/perf_data/overlap.h"
#include "formats/perf_event/sideband.h"
#include "trace/warning_codes.h"

namespace ptkit::formats {

using trace::WarningCode;

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kAux = "-aux-idx";
constexpr std::string_view kSideband = "-sideband";
constexpr std::string_view kBin = ".bin";
constexpr std::string_view kEvents = ".pevent";
constexpr std::size_t kMostFiles = 65536;

struct Parts {
  std::string base;                                                       // path of the perf.data
  std::map<std::int64_t, std::map<std::int64_t, std::string>> snapshots;  // by buffer and number
  std::vector<std::string> sideband;
};

std::string name_of(const std::string& path) { return base::to_bytes(base::to_path(path).filename()); }

// "3.bin" and "3.7.bin".
bool read_index(std::string_view rest, std::int64_t& buffer, std::int64_t& snapshot) {
  const auto dot = rest.find('.');
  const auto first = number_in_name(std::string(rest.substr(0, dot)), "");
  if (!first || dot == std::string_view::npos) return false;
  buffer = *first;
  snapshot = -1;
  if (rest.substr(dot) == kBin) return true;
  const auto second = number_in_name(std::string(rest.substr(dot + 1)), "", kBin);
  if (second) snapshot = *second;
  return second.has_value();
}

// Returns the base of a trace file's path; empty: another file.
std::string base_of(const std::string& path) {
  const std::string name = name_of(path);
  const auto at = name.rfind(kAux);
  std::int64_t buffer = 0;
  std::int64_t snapshot = 0;
  if (at == std::string::npos || at == 0) return {};
  if (!read_index(std::string_view(name).substr(at + kAux.size()), buffer, snapshot)) return {};
  return join(parent_folder(path), name.substr(0, at));
}

std::vector<std::string> files_in(const std::string& folder) {
  std::vector<std::string> files;
  std::error_code ignored;
  for (auto at = fs::directory_iterator(base::to_path(folder), ignored);
       at != fs::directory_iterator() && files.size() < kMostFiles; at.increment(ignored))
    files.push_back(base::to_bytes(at->path()));
  std::sort(files.begin(), files.end());
  return files;
}

// Returns the files with the base of a stream's path, or with the first base in a folder.
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
      std::int64_t snapshot = 0;
      const std::string name = name_of(file);
      read_index(std::string_view(name).substr(name.rfind(kAux) + kAux.size()), buffer, snapshot);
      parts.snapshots[buffer][snapshot] = file;
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

bool sniff_libipt_script(const std::string& path) {
  return is_folder(path) ? !parts_of(path).snapshots.empty() : is_file(path) && !base_of(path).empty();
}

class LibiptScriptLoader {
 public:
  LibiptScriptLoader(const std::string& path, const OpenOptions& options) : path_(path), options_(options) {}

  base::Result<trace::TraceBundle> load(const Parts& parts) {
    for (const auto& [buffer, snapshots] : parts.snapshots) {
      if (const auto failure = add_stream(buffer, snapshots)) return *failure;
    }
    if (bundle_.streams.empty()) return bad_file(path_, "all streams are empty");
    for (const std::string& file : parts.sideband) read_sideband(file);
    if (!parts.sideband.empty()) sideband_file_ = parts.sideband.front();
    add_code();
    return std::move(bundle_);
  }

 private:
  // Several files of a buffer are snapshots of its ring. Overlaps are used once. Trace between two snapshots
  // without an overlap is lost.
  std::optional<base::Failure> add_stream(std::int64_t buffer,
                                          const std::map<std::int64_t, std::string>& snapshots) {
    trace::Stream stream;
    stream.name = "idx " + std::to_string(buffer);
    std::vector<trace::TraceBuffer> parts;
    std::size_t size = 0;
    trace::TraceBuffer older;
    for (const auto& [snapshot, file] : snapshots) {
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
    auto joined = join_buffers(std::move(parts));
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
    if (walked.damaged || walked.end != data.value().size())
      bundle_.warnings.push_back(warn(WarningCode::LIBIPT_SIDEBAND_CUT, walked.end).at(file));
  }

  // Reads an MMAP record. Its first fields do not depend on the event attributes.
  void read_mapping(const perf::Record& record) {
    auto mapped = perf::read_mmap(record, perf::Fields(record.body));
    if (!mapped || !mapped->is_code) return;
    const perf::Event& event = mapped->event;
    const bool is_path = event.text.starts_with("/") && !event.text.starts_with("//");
    if (!is_path || event.pid <= 0 || event.size == 0) return;
    if (event.address + (event.size - 1) < event.address) return;
    mappings_.push_back({std::move(mapped->event), files_});
  }

  // Files of several CPUs have no common order of mappings. A mapping of a later file is used.
  void warn_of_conflicts() {
    std::vector<const Mapping*> sorted;
    for (const Mapping& one : mappings_) sorted.push_back(&one);
    const auto address = [](const Mapping* one) { return one->event.address; };
    std::ranges::stable_sort(sorted, {}, address);
    const Mapping* before = nullptr;  // the mapping with the greatest end
    for (const Mapping* one : sorted) {
      const bool hides = before != nullptr && before->last() >= one->event.address;
      if (hides && before->file != one->file && before->differs(*one)) {
        bundle_.warnings.push_back(
            warn(WarningCode::LIBIPT_MAPPING_CONFLICT, before->event.text, one->event.text).at(path_));
        return;
      }
      if (before == nullptr || one->last() > before->last()) before = one;
    }
  }

  void add_code() {
    std::set<std::int64_t> pids;
    for (const Mapping& one : mappings_) pids.insert(one.event.pid);
    if (pids.size() > 1) {
      bundle_.warnings.push_back(warn(WarningCode::LIBIPT_PROCESS_CONFLICT, pids.size()).at(path_));
      return;
    }
    warn_of_conflicts();
    perf::Binaries binaries(bundle_, is_folder(path_) ? path_ : parent_folder(path_), {}, options_.binaries);
    binaries.recorded_at(sideband_file_);
    for (const Mapping& one : mappings_) binaries.expect(perf::mapping_of(one.event));
    for (const auto& [event, file] : mappings_) {
      trace::CodeRegion region;
      region.address = event.address;
      region.size = event.size;
      region.file_offset = event.file_offset;
      region.file = binaries.find(perf::mapping_of(event));
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
    std::size_t file = 0;  // index of the sideband file
    [[nodiscard]] std::uint64_t last() const noexcept { return event.address + (event.size - 1); }
    [[nodiscard]] bool differs(const Mapping& other) const noexcept {
      return event.text != other.event.text ||
             event.address - event.file_offset != other.event.address - other.event.file_offset;
    }
  };
  std::vector<Mapping> mappings_;
  std::string sideband_file_;
  std::size_t files_ = 0;  // number of sideband files read so far
};

base::Result<trace::TraceBundle> read_libipt_script(const std::string& path, const OpenOptions& options) {
  const Parts parts = parts_of(path);
  if (parts.snapshots.empty())
    return bad_file(path, "expected files NAME-aux-idx0.bin, ... (libipt's scripts), found none");
  if (is_file(parts.base) && kPerfDataFormat.sniff(parts.base)) {
    auto whole = kPerfDataFormat.read(parts.base, options);
    if (whole.ok()) {
      whole.value().warnings.push_back(warn(WarningCode::LIBIPT_PERF_DATA_OPENED, parts.base).at(path));
      return whole;
    }
  }
  return LibiptScriptLoader(path, options).load(parts);
}

}  // namespace

const Format kLibiptScriptFormat{
    .name = "libipt-script",
    .description = "NAME-aux-idxN.bin of libipt's scripts for perf.data",
    .sniff = &sniff_libipt_script,
    .read = &read_libipt_script,
    .unverified = true,
};

}  // namespace ptkit::formats
