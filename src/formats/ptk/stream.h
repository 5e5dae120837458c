// Assembles the DATA chunks of one stream and reports missing bytes between them. For .cpp files of this
// folder only.
#pragma once

#include <vector>

#include "formats/ptk/stream_data.h"
#include "trace/bundle.h"

namespace ptkit::formats::ptk {

class StreamAssembler {
 public:
  // Adds a DATA chunk. Returns false, and adds nothing, if the stream already has bytes at or after its
  // offset.
  [[nodiscard]] bool add(const IndexEntry& entry);
  // Adds bytes that cannot be read.
  void add_lost(std::uint64_t place, std::uint64_t size);

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
  [[nodiscard]] std::uint64_t data_offset(std::uint64_t place) const;

 private:
  struct Part {
    std::uint64_t place = 0;
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
