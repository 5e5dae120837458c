// Writes .ptk bundles (docs/bundle-format.md). Append-only: flushed data can be read even if the writer never
// finishes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/ptk/file.h"
#include "trace/bundle.h"

namespace ptkit::formats {

// One moment by three clocks.
struct ClockSample {
  std::uint64_t tsc = 0;
  std::int64_t monotonic_ns = 0;  // CLOCK_MONOTONIC
  std::int64_t realtime_ns = 0;   // CLOCK_REALTIME
};

// Facts about a recording as a whole.
struct RecordingInfo {
  std::string backend;               // "step", ...
  std::vector<std::string> command;  // argv
  std::string machine;               // kernel and processor, as text
  std::int64_t begin_ns = 0;         // CLOCK_REALTIME
  std::int64_t end_ns = 0;           // CLOCK_REALTIME; 0: not ended
  std::optional<int> exit_status;    // of the program: 128 + signal if it was killed
  std::uint64_t instructions = 0;    // executed instructions; 0: the recorder does not count them
  std::optional<ClockSample> clocks;
};

struct PtkOptions {
  // Writes no paths, command lines, thread names or host names. docs/bundle-format.md lists the replacements.
  bool redact = false;
  ptk::Naming naming = ptk::Naming::AT_ONCE;
  // Owner of the complete file; nullopt: this process' user.
  std::optional<base::Owner> owner = base::sudo_caller();
};

// The first failure is kept: later calls do nothing, and finish() returns it. For one thread at a time.
class PtkWriter {
 public:
  [[nodiscard]] static base::Result<PtkWriter> create(const std::string& path,
                                                      const PtkOptions& options = {});

  void info(const RecordingInfo& info);
  void configuration(const trace::Configuration& configuration);
  void metadata(const std::string& json_object);  // members of a META chunk, as they are
  // A whole sentence about the recording, which is shown when the bundle is opened. Redaction drops sentences
  // with a slash, since they may name a path.
  void warning(const std::string& text);
  void space(trace::SpaceId id, const trace::Space& space);
  void stream(std::uint32_t id, const trace::Stream& stream);  // all but its data
  // Writes stream offsets of the context switches that were recorded by time. `stream` is a reader's stream
  // with switches by offset.
  void switch_offsets(std::uint32_t id, const trace::Stream& stream);
  void data(std::uint32_t stream, base::Bytes bytes);  // appends to the stream
  // The stream goes on after a loss of `bytes` (0: unknown).
  void loss(std::uint32_t stream, std::uint64_t bytes, base::Status cause);
  void file(std::uint32_t id, const trace::ImageFile& file);  // all but the contents
  void code(const trace::CodeRegion& region);
  // Mappings that begin at the addresses of the region, in its space, before `tsc` end then.
  void code_end(const trace::CodeRegion& region, std::uint64_t tsc);
  void names(const trace::NameRange& range);
  void sideband(const trace::Sideband& record);

  void flush();  // writes all pending data to the file
  // Writes index and trailer; returns the file's size.
  [[nodiscard]] base::Result<std::uint64_t> finish();
  [[nodiscard]] const std::optional<base::Failure>& failure() const noexcept { return file_.failure(); }
  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }

 private:
  struct StreamBuffer {
    std::uint64_t written = 0;  // stream offset of the first byte of `pending`
    std::vector<std::uint8_t> pending;
  };

  PtkWriter(ptk::ChunkFile file, const PtkOptions& options) : file_(std::move(file)), options_(options) {}
  void chunk(ptk::ChunkType type, std::uint32_t id, const std::string& text);
  void put_file(std::uint32_t id, const trace::ImageFile& file);
  void flush_stream(std::uint32_t id, StreamBuffer& buffer);
  void flush_largest_stream();
  void code_record(const trace::CodeRegion& region, std::uint64_t begin, std::uint64_t size,
                   std::uint32_t flags);
  void flush_code();
  void flush_sideband();

  ptk::ChunkFile file_;
  PtkOptions options_;
  std::map<std::uint32_t, StreamBuffer> streams_;
  std::size_t pending_bytes_ = 0;  // sum of all streams
  std::vector<std::uint8_t> code_;
  std::string sideband_;            // a JSON array without its closing bracket
  std::uint64_t flushed_size_ = 0;  // the file's size after the last flush
};

// Saves a whole bundle. Reading the file gives an equal bundle, except for contents of files and for what
// `options` leave out.
[[nodiscard]] base::Result<std::uint64_t> save_ptk(const trace::TraceBundle& bundle, const std::string& path,
                                                   const PtkOptions& options = {});

}  // namespace ptkit::formats
