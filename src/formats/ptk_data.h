// Trace bytes of a bundle that are read from its file and unpacked when they are needed. For .cpp files of
// this folder only.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/regular_file.h"
#include "base/status.h"
#include "formats/ptk_format.h"
#include "trace/buffer.h"

namespace ptkit::formats::ptk {

// A bundle that is open for reading, or the bytes of one. What is not mapped can change without harm: its
// checksum tells.
class OpenFile {
 public:
  explicit OpenFile(base::RegularFile file) : bytes_(std::move(file)) {}
  explicit OpenFile(trace::TraceBuffer bytes) : bytes_(std::move(bytes)) {}
  [[nodiscard]] static base::Result<std::shared_ptr<const OpenFile>> open(const std::string& path);

  // False if the file ends before, or cannot be read.
  [[nodiscard]] bool read(std::uint64_t offset, std::span<std::uint8_t> out) const noexcept;

 private:
  std::variant<base::RegularFile, trace::TraceBuffer> bytes_;
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
