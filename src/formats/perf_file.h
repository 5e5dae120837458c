// The container of perf.data: header, attributes and features, and every record, those that were packed too
// (tools/perf/util/header.c, session.c, zstd.c). For .cpp files of this folder only.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/perf_record.h"
#include "trace/buffer.h"

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
  FEATURE_PMU_CAPS = 31,
};

class File {
 public:
  // Refuses what is no perf.data; what is damaged behind the header leads to warnings.
  // `folder`: where threads of perf wrote records of their own (--threads: data.0, data.1, ...), or empty.
  [[nodiscard]] static base::Result<File> open(const std::string& path, const std::string& folder = {});
  // The same of bytes that were read already; messages call them `path`.
  [[nodiscard]] static base::Result<File> of(const std::string& path, trace::TraceBuffer contents);

  using Each = std::function<void(const Record&)>;
  using Missing = std::function<void()>;
  // Gives all records in the file's order. `missing`: here some cannot be read, of whatever is recorded.
  void for_each(const Each& each, const Missing& missing);

  [[nodiscard]] const std::vector<Attr>& attrs() const noexcept { return attrs_; }
  [[nodiscard]] base::Bytes feature(unsigned number) const;  // empty: it is not there
  [[nodiscard]] std::string feature_text(unsigned number) const;
  [[nodiscard]] std::vector<std::string> command() const;
  [[nodiscard]] std::uint64_t size() const noexcept;  // of all files
  // Bytes of a record, to stay as long as anybody has them: a part of the file, or a copy of what was packed.
  [[nodiscard]] trace::TraceBuffer part(base::Bytes bytes) const;

  std::vector<std::string> warnings;

 private:
  File(std::string path, trace::TraceBuffer contents);
  [[nodiscard]] std::optional<base::Failure> read_header();
  void read_attrs(std::uint64_t offset, std::uint64_t size, std::uint64_t entry);
  void read_features(std::uint64_t offset, base::Bytes bitmap);
  void take_from_pipe();
  [[nodiscard]] bool take_header_record(const Record& record);
  void warn(const std::string& what);
  [[nodiscard]] std::vector<std::size_t> indexed_pieces() const;
  // A file with records alone, or that part of one. `pieces`: where trace begins for sure, in order.
  void walk_one(base::Bytes records, std::uint64_t offset, const std::string& path,
                const std::vector<std::size_t>& pieces, const Each& each, const Missing& missing);
  // [offset, offset + size) of the file, if it is there.
  [[nodiscard]] base::Bytes section(std::uint64_t offset, std::uint64_t size) const;

  std::string path_;
  trace::TraceBuffer contents_;
  base::Bytes bytes_;
  base::Bytes records_;
  std::uint64_t records_at_ = 0;
  bool is_pipe_ = false;
  bool is_cut_ = false;
  std::map<std::string, trace::TraceBuffer> others_;  // files with nothing but records
  std::vector<Attr> attrs_;
  std::uint64_t ids_ = 0;  // of all attributes
  std::map<unsigned, base::Bytes> features_;
};

}  // namespace ptkit::formats::perf
