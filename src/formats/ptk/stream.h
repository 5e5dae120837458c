// The trace bytes of one stream: assembles them from its DATA chunks, reports missing bytes between these,
// and reads and unpacks them lazily. For .cpp files of this folder only.
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
#include "trace/bundle.h"

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

class StreamAssembler {
 public:
  // Adds a DATA chunk. Returns false, and adds nothing, if the stream already has bytes at or after its
  // offset.
  [[nodiscard]] bool add(const IndexEntry& entry);
  // Adds bytes that cannot be read.
  void add_lost(std::uint64_t begin, std::uint64_t size);

  struct Hole {
    std::uint64_t begin = 0;  // stream offsets
    std::uint64_t end = 0;
    std::uint64_t unexplained = 0;  // missing bytes that no recorded loss accounts for
  };
  // Sets the data of `stream`, which is read lazily from `file` into `unpacked`. The losses' stream offsets
  // become offsets in that data. Holes that no loss accounts for are added as losses and returned.
  [[nodiscard]] base::Result<std::vector<Hole>> assemble(trace::Stream& stream,
                                                         const std::shared_ptr<const OpenFile>& file,
                                                         const std::shared_ptr<base::UnpackedFile>& unpacked);
  [[nodiscard]] std::size_t size() const noexcept { return size_; }
  // Converts a stream offset to an offset in the data. A missing byte's offset is that of the next byte.
  [[nodiscard]] std::uint64_t data_offset(std::uint64_t position) const;

 private:
  struct Part {
    std::uint64_t begin = 0;   // stream offset
    std::uint64_t offset = 0;  // in the data
  };
  [[nodiscard]] std::vector<Hole> holes() const;

  std::vector<DataChunk> chunks_;
  std::size_t size_ = 0;        // bytes of the data
  std::vector<Part> parts_;     // runs of contiguous chunks
  std::uint64_t position_ = 0;  // stream offset after the last part
  std::uint64_t end_ = 0;       // stream offset after the last byte, unreadable ones included
};

}  // namespace ptkit::formats::ptk
