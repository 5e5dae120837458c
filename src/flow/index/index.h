// Index of a trace: positions where decoding can start, the state there, and the times and code of each
// segment; and sums over the whole trace. docs/index-file.md has the format.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "flow/decoder/decoder.h"
#include "flow/decoder/flow_state.h"
#include "flow/index/line_set.h"
#include "trace/buffer.h"

namespace ptkit::flow::index {

// A part of a stream, from the end of a PSB+ to the end of a later PSB+.
struct Segment {
  enum Flag : std::uint32_t {
    IP_KNOWN = 1,    // packets are enabled, and `ip` is the IP
    TIMES_KNOWN = 2  // `tsc_least` and `tsc_most` are valid; else no row has a time
  };
  std::uint64_t psb = 0;    // PSB of the PSB+ before the segment; 0: the start of the stream
  std::uint64_t begin = 0;  // offset
  std::uint64_t ip = 0;
  std::uint32_t flags = 0;
  std::uint32_t space = 0;
  std::int64_t pid = trace::kNoId;
  std::int64_t tid = trace::kNoId;
  std::uint64_t instructions = 0;  // of the stream before the segment
  std::uint64_t blocks = 0;
  std::uint64_t order = 0;     // events, errors and gaps before the segment
  std::uint64_t troubles = 0;  // errors and gaps in the segment
  std::uint64_t tsc_least = 0;
  std::uint64_t tsc_most = 0;   // inclusive
  std::uint64_t bytes_sum = 0;  // check sum of the stream's bytes in the segment

  // Position in the file, and check sum of the data.
  struct Blob {
    std::uint64_t offset = 0;
    std::uint32_t checkpoint = 0;  // bytes; 0 at the start of the stream
    std::uint32_t time = 0;        // bytes; 0: times cannot be queried from here on
    std::uint32_t lines = 0;
    std::uint64_t sum = 0;
  };
  Blob blob;
};

// Rows of the tables of a stream.
struct RowTotals {
  std::uint64_t instructions = 0;
  std::uint64_t blocks = 0;
  std::uint64_t branches = 0;
  std::uint64_t events = 0;
  std::uint64_t errors = 0;
  std::uint64_t gaps = 0;

  [[nodiscard]] std::uint64_t troubles() const noexcept { return errors + gaps; }
  [[nodiscard]] std::uint64_t order() const noexcept { return events + troubles(); }
  RowTotals& operator+=(const RowTotals& more) noexcept {
    instructions += more.instructions;
    blocks += more.blocks;
    branches += more.branches;
    events += more.events;
    errors += more.errors;
    gaps += more.gaps;
    return *this;
  }
};

struct StreamIndex {
  std::uint64_t size = 0;    // of the stream
  std::uint64_t sample = 0;  // hash of some of its bytes
  bool timeless = false;     // no row has a time
  RowTotals rows;
  std::vector<Segment> segments;

  [[nodiscard]] std::uint64_t end(std::size_t segment) const noexcept {
    return segment + 1 < segments.size() ? segments[segment + 1].begin : size;
  }
};

// Stamp of the trace's file, or of the files of a folder: {} if unknown.
struct Stamp {
  std::uint64_t size = 0;
  std::int64_t time = 0;  // modification time, ns; for a folder: a hash of all
  [[nodiscard]] bool known() const noexcept { return size != 0; }
  [[nodiscard]] bool operator==(const Stamp&) const noexcept = default;
};
[[nodiscard]] Stamp stamp_of(const std::string& path);

// Everything that rows depend on, except for the trace's bytes: code, clock, CPU, threads, options.
[[nodiscard]] std::uint64_t identity_of(const trace::TraceBundle& bundle, flow::Resync resync);
// Hash of samples of the bytes.
[[nodiscard]] std::uint64_t sample_of(base::Bytes stream);

class Index {
 public:
  // Reads an index that save() or to_bytes() wrote for this trace. BAD_FILE, with the reason, if it is
  // damaged, has another version, or belongs to another trace, other images or other options.
  [[nodiscard]] static base::Result<std::shared_ptr<const Index>> read(const trace::TraceBuffer& file,
                                                                       const trace::TraceBundle& bundle,
                                                                       flow::Resync resync,
                                                                       const Stamp& stamp);

  [[nodiscard]] const std::vector<StreamIndex>& streams() const noexcept { return streams_; }
  [[nodiscard]] std::size_t size() const noexcept { return file_.size(); }
  // The sums that with_sums() was given. Empty: there are none, or they are damaged.
  [[nodiscard]] base::Bytes sums() const noexcept;

  // Data of a segment in the file, if it is not damaged.
  struct Parts {
    bool good = false;
    base::Bytes checkpoint;
    base::Bytes time;
    base::Bytes lines;
  };
  [[nodiscard]] Parts parts(const Segment& segment) const noexcept;
  // True if the stream's bytes are those that were indexed.
  [[nodiscard]] static bool is_as_indexed(const trace::TraceBuffer& stream, const StreamIndex& index,
                                          std::size_t segment);

 private:
  Index() = default;
  [[nodiscard]] std::string read_streams(base::Bytes table, std::uint32_t count);
  [[nodiscard]] std::string compare(const trace::TraceBundle& bundle, bool whole) const;

  trace::TraceBuffer file_;
  std::vector<StreamIndex> streams_;
  std::uint64_t sums_size_ = 0;
  std::uint64_t sums_sum_ = 0;
};

// Data of a segment in the file, besides the table.
struct Content {
  std::vector<std::uint8_t> checkpoint;
  std::vector<std::uint8_t> time;
  std::vector<std::uint8_t> lines;
};
struct BuiltStream {
  StreamIndex index;
  std::vector<Content> contents;  // of each segment
};

[[nodiscard]] std::vector<std::uint8_t> to_bytes(std::vector<BuiltStream> streams, std::uint64_t identity,
                                                 const Stamp& stamp);
// The bytes of an index without sums, with what others know to read, at the end.
[[nodiscard]] std::vector<std::uint8_t> with_sums(base::Bytes index, base::Bytes sums);

}  // namespace ptkit::flow::index
