// Writes .ptk bundles (docs/bundle-format.md). Append-only: what was flushed can be read though the writer
// never finishes.
#pragma once

#include <cstdio>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "formats/ptk_format.h"
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

// The first failure sticks: later calls do nothing, and finish() reports it.
class PtkWriter {
 public:
  [[nodiscard]] static base::Result<PtkWriter> create(const std::string& path);

  void info(const RecordingInfo& info);
  void configuration(const trace::Configuration& configuration);
  void metadata(const std::string& json_object);  // members of a META chunk, as they are
  void space(trace::SpaceId id, const trace::Space& space);
  void stream(std::uint32_t id, const trace::Stream& stream);  // all but its data
  void data(std::uint32_t stream, base::Bytes bytes);          // appends to the stream
  void file(std::uint32_t id, const trace::ImageFile& file);   // path, build-id and names; not the contents
  void code(const trace::CodeRegion& region);
  void sideband(const trace::Sideband& record);

  void flush();                                        // all that was given so far reaches the file
  [[nodiscard]] base::Result<std::uint64_t> finish();  // index and trailer; the size of the file
  [[nodiscard]] const std::optional<base::Failure>& failure() const noexcept { return failure_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  struct Closer {
    void operator()(std::FILE* file) const noexcept { static_cast<void>(std::fclose(file)); }
  };
  struct StreamBuffer {
    std::uint64_t written = 0;  // stream offset of the first byte of `pending`
    std::vector<std::uint8_t> pending;
  };

  PtkWriter(std::string path, std::FILE* file) : path_(std::move(path)), file_(file) {}
  void chunk(ptk::ChunkType type, std::uint32_t id, std::uint64_t place, base::Bytes payload);
  void chunk(ptk::ChunkType type, std::uint32_t id, const std::string& text);
  void put(base::Bytes bytes);
  void fail(const char* what);
  void flush_stream(std::uint32_t id, StreamBuffer& buffer);
  void flush_code();
  void flush_sideband();

  std::string path_;
  std::unique_ptr<std::FILE, Closer> file_;
  std::uint64_t offset_ = 0;
  std::optional<base::Failure> failure_;
  std::vector<ptk::IndexEntry> index_;
  std::map<std::uint32_t, StreamBuffer> streams_;
  std::vector<std::uint8_t> code_;
  std::string sideband_;  // a JSON array without its closing bracket
};

// Saves a whole bundle: what reading the file gives equals it (contents of files excepted).
[[nodiscard]] base::Result<std::uint64_t> save_ptk(const trace::TraceBundle& bundle, const std::string& path);

}  // namespace ptkit::formats
