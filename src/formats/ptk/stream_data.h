// Trace bytes of a bundle that are read and unpacked lazily. For .cpp files of this folder only.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/status.h"
#include "base/system/file_reader.h"
#include "base/system/unpacked_file.h"
#include "formats/ptk/layout.h"
#include "trace/buffer.h"

namespace ptkit::formats::ptk {

// A bundle's open file, or its bytes. The file is not mapped: a change by another process shows as a wrong
// checksum, not as SIGBUS.
class OpenFile {
 public:
  explicit OpenFile(base::FileReader file) : bytes_(std::move(file)) {}
  explicit OpenFile(trace::TraceBuffer bytes) : bytes_(std::move(bytes)) {}
  [[nodiscard]] static base::Result<std::shared_ptr<const OpenFile>> open(const std::string& path);

  // False if the file is too short or cannot be read.
  [[nodiscard]] bool read(std::uint64_t offset, std::span<std::uint8_t> out) const noexcept;

 private:
  std::variant<base::FileReader, trace::TraceBuffer> bytes_;
};

// One DATA chunk of a stream.
struct DataChunk {
  std::size_t begin = 0;          // offset of the chunk's bytes in the stream's data
  std::uint64_t file_offset = 0;  // of the stored payload
  ChunkHeader header;
};

// Concatenates the chunks, `size` bytes in all. They are unpacked into `unpacked`; null: into memory.
// IO_ERROR if address space cannot be reserved.
[[nodiscard]] base::Result<trace::TraceBuffer> make_stream_data(std::shared_ptr<const OpenFile> file,
                                                                std::vector<DataChunk> chunks,
                                                                std::size_t size,
                                                                std::shared_ptr<base::UnpackedFile> unpacked);

}  // namespace ptkit::formats::ptk
