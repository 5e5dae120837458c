// The container of perf.data: header, attributes, features and records, compressed ones included
// (tools/perf/util/header.c, session.c, zstd.c). For .cpp files of this folder only.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/perf_event/record.h"
#include "trace/buffer.h"
#include "trace/warning.h"

namespace ptkit::formats::perf {

enum Feature : unsigned {
  FEATURE_TRACING_DATA = 1,
  FEATURE_BUILD_ID = 2,
  FEATURE_HOSTNAME = 3,
  FEATURE_OSRELEASE = 4,
  FEATURE_VERSION = 5,
  FEATURE_ARCH = 6,
  FEATURE_NRCPUS = 7,
  FEATURE_CPUID = 9,
  FEATURE_CMDLINE = 11,
  FEATURE_EVENT_DESC = 12,
  FEATURE_PMU_MAPPINGS = 16,
  FEATURE_AUXTRACE = 18,
  FEATURE_SAMPLE_TIME = 21,
  FEATURE_DIR_FORMAT = 24,
  FEATURE_BPF_PROG_INFO = 25,
  FEATURE_CPU_PMU_CAPS = 28,
  FEATURE_PMU_CAPS = 31,
};

class File {
 public:
  // Fails if the file is no perf.data. Damage after the header becomes warnings.
  // `folder`: folder with records of perf's threads (--threads: data.0, data.1, ...), or empty.
  [[nodiscard]] static base::Result<File> open(const std::string& path, const std::string& folder = {});
  // For bytes that were already read. Messages name them `path`.
  [[nodiscard]] static base::Result<File> of(const std::string& path, trace::TraceBuffer contents);

  using Each = std::function<void(const Record&)>;
  using Missing = std::function<void()>;
  // Calls `each` for all records in the file's order. `missing` is called where records cannot be read.
  void for_each(const Each& each, const Missing& missing);

  [[nodiscard]] const std::vector<Attr>& attrs() const noexcept { return attrs_; }
  [[nodiscard]] base::Bytes feature(unsigned number) const;  // empty: the file lacks the feature
  [[nodiscard]] std::string feature_text(unsigned number) const;
  [[nodiscard]] std::vector<std::string> command() const;
  [[nodiscard]] std::uint64_t size() const noexcept;  // sum of all files
  // Returns shared ownership of a record's bytes: a slice of the file, or a copy of unpacked bytes.
  [[nodiscard]] trace::TraceBuffer part(base::Bytes bytes) const;

  std::vector<trace::Warning> warnings;

 private:
  File(std::string path, trace::TraceBuffer contents);
  [[nodiscard]] std::optional<base::Failure> read_header();
  void read_attrs(std::uint64_t offset, std::uint64_t size, std::uint64_t entry);
  void read_features(std::uint64_t offset, base::Bytes bitmap);
  void take_from_pipe();
  [[nodiscard]] bool take_header_record(const Record& record);
  void add_warning(const trace::Warning& warning);
  [[nodiscard]] std::vector<std::size_t> indexed_auxtrace() const;
  // Walks the records of one file. `auxtrace`: sorted offsets at which AUXTRACE records are known to begin.
  void walk_one(base::Bytes records, std::uint64_t offset, const std::string& path,
                const std::vector<std::size_t>& auxtrace, const Each& each, const Missing& missing);
  // Returns [offset, offset + size) of the file; empty if the file is shorter.
  [[nodiscard]] base::Bytes section(std::uint64_t offset, std::uint64_t size) const;

  std::string path_;
  trace::TraceBuffer contents_;
  base::Bytes bytes_;
  base::Bytes records_;
  std::uint64_t records_at_ = 0;
  bool is_pipe_ = false;
  bool is_cut_ = false;
  std::map<std::string, trace::TraceBuffer> others_;  // data.N: files of records only
  std::vector<Attr> attrs_;
  std::uint64_t ids_ = 0;  // number of ids of all attributes
  std::map<unsigned, base::Bytes> features_;
};

}  // namespace ptkit::formats::perf
