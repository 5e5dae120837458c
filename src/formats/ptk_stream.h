// Puts the DATA chunks of one stream together, and says where bytes are missing between them. For .cpp files
// of this folder only.
#pragma once

#include <vector>

#include "formats/ptk_data.h"
#include "trace/bundle.h"

namespace ptkit::formats::ptk {

class StreamParts {
 public:
  // A DATA chunk. False if the stream has bytes at its place or behind it already: nothing is added.
  [[nodiscard]] bool add(const IndexEntry& entry);
  // There were bytes, and they cannot be read.
  void lose(std::uint64_t place, std::uint64_t size);

  struct Hole {
    std::uint64_t begin = 0;  // stream offsets
    std::uint64_t end = 0;
    std::uint64_t unexplained = 0;  // bytes
  };
  // Gives `stream` its data, to be read from `file`. Its losses, by stream offset until now, become offsets
  // in that data; holes that they do not explain are added as losses, and returned.
  [[nodiscard]] base::Result<std::vector<Hole>> give_to(trace::Stream& stream,
                                                        const std::shared_ptr<const OpenFile>& file);
  // In the data: of what stands at `place` in the stream, or of what follows if nothing does.
  [[nodiscard]] std::uint64_t data_offset(std::uint64_t place) const;

 private:
  struct Part {
    std::uint64_t place = 0;
    std::uint64_t offset = 0;  // in the data
  };
  [[nodiscard]] std::vector<Hole> holes() const;

  std::vector<DataPiece> pieces_;
  std::size_t size_ = 0;        // of the data
  std::vector<Part> parts_;     // only where a part does not begin where the one before ended
  std::uint64_t position_ = 0;  // stream offset after the last part
  std::uint64_t end_ = 0;       // after the last bytes, those that cannot be read too
};

}  // namespace ptkit::formats::ptk
