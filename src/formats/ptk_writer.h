// Writes .ptk bundles (docs/bundle-format.md). Append-only: what was flushed can be read though the writer
// never finishes.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "formats/ptk_file.h"
#include "trace/bundle.h"

namespace ptkit::formats {

// What a recorder says about a recording as a whole.
struct RecordingInfo {
  std::string backend;               // "step", ...
  std::vector<std::string> command;  // argv
  std::string machine;               // kernel and processor, in words
  std::int64_t begin_ns = 0;         // CLOCK_REALTIME
  std::int64_t end_ns = 0;           // 0: not ended yet
  std::optional<int> exit_status;    // of the program: 128 + signal if it was killed
  std::uint64_t instructions = 0;    // executed, as far as the recorder counts them; 0: it does not
};

struct PtkOptions {
  // No paths, command lines, names of threads or of the machine: whatever a recorder passes, docs/
  // bundle-format.md says what reaches the file instead.
  bool redact = false;
  ptk::Naming naming = ptk::Naming::AT_ONCE;
  std::optional<base::Owner> owner =
      base::sudo_caller();  // of the complete file; nothing: this process' user
};

// The first failure sticks: later calls do nothing, and finish() reports it. For one thread at a time.
class PtkWriter {
 public:
  [[nodiscard]] static base::Result<PtkWriter> create(const std::string& path,
                                                      const PtkOptions& options = {});

  void info(const RecordingInfo& info);
  void configuration(const trace::Configuration& configuration);
  void metadata(const std::string& json_object);  // members of a META chunk, as they are
  // A whole sentence about the recording, shown to whoever opens it. One with a slash is taken to name a
  // path.
  void warning(const std::string& sentence);
  void space(trace::SpaceId id, const trace::Space& space);
  void stream(std::uint32_t id, const trace::Stream& stream);  // all but its data
  // Where the switches were that were told by time: `stream` as a reader has it, with switches by offset.
  void places(std::uint32_t id, const trace::Stream& stream);
  void data(std::uint32_t stream, base::Bytes bytes);  // appends to the stream
  // The stream goes on after `bytes` that are not there (0: some, nobody knows how many).
  void loss(std::uint32_t stream, std::uint64_t bytes, base::Status cause);
  void file(std::uint32_t id, const trace::ImageFile& file);  // path, build-id and names; not the contents
  void code(const trace::CodeRegion& region);
  void sideband(const trace::Sideband& record);

  void flush();                                        // all that was given so far reaches the file
  [[nodiscard]] base::Result<std::uint64_t> finish();  // index and trailer; the size of the file
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
  void flush_code();
  void flush_sideband();

  ptk::ChunkFile file_;
  PtkOptions options_;
  std::map<std::uint32_t, StreamBuffer> streams_;
  std::size_t pending_bytes_ = 0;  // of all streams
  std::vector<std::uint8_t> code_;
  std::string sideband_;            // a JSON array without its closing bracket
  std::uint64_t flushed_size_ = 0;  // of the file, after the last flush
};

// Saves a whole bundle: what reading the file gives equals it (contents of files excepted, and what
// `options` leave out).
[[nodiscard]] base::Result<std::uint64_t> save_ptk(const trace::TraceBundle& bundle, const std::string& path,
                                                   const PtkOptions& options = {});

}  // namespace ptkit::formats
