// Trace bytes of a bundle that are read from its file and unpacked when they are needed. For .cpp files of
// this folder only.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "formats/ptk_format.h"
#include "trace/buffer.h"

namespace ptkit::formats::ptk {

// A bundle that is open for reading. What is not mapped can change without harm: its checksum tells.
class OpenFile {
 public:
  [[nodiscard]] static base::Result<std::shared_ptr<const OpenFile>> open(const std::string& path);
  ~OpenFile();
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;

  // False if the file ends before, or cannot be read.
  [[nodiscard]] bool read(std::uint64_t offset, std::span<std::uint8_t> out) const noexcept;

 private:
  explicit OpenFile(int fd) : fd_(fd) {}
  int fd_;
};

// Trace bytes of one DATA chunk in a stream.
struct DataPiece {
  std::size_t begin = 0;    // among the bytes of the stream
  std::uint64_t place = 0;  // in the file: where the payload is stored
  ChunkHeader header;
};

// The pieces, from 0 to `size`, one behind the other. IO_ERROR if there is no room for them.
[[nodiscard]] base::Result<trace::TraceBuffer> make_stream_data(std::shared_ptr<const OpenFile> file,
                                                                std::vector<DataPiece> pieces,
                                                                std::size_t size);

}  // namespace ptkit::formats::ptk
