// Puts the DATA chunks of one stream together, and says where bytes are missing between them. For .cpp files
// of this folder only.
#pragma once

#include <vector>

#include "trace/bundle.h"

namespace ptkit::formats::ptk {

class StreamParts {
 public:
  // False if the stream has bytes at `place` or behind it already: nothing is added.
  [[nodiscard]] bool add(std::uint64_t place, base::Bytes bytes);
  // There were bytes, and they cannot be read.
  void lose(std::uint64_t place, std::uint64_t size);

  struct Hole {
    std::uint64_t begin = 0;  // stream offsets
    std::uint64_t end = 0;
    std::uint64_t unexplained = 0;  // bytes
  };
  // Gives `stream` its data. Its losses, by stream offset until now, become offsets in that data; holes that
  // they do not explain are added as losses, and returned.
  [[nodiscard]] std::vector<Hole> give_to(trace::Stream& stream);

 private:
  struct Part {
    std::uint64_t place = 0;
    std::uint64_t offset = 0;  // in data_
  };
  [[nodiscard]] std::uint64_t data_offset(std::uint64_t place) const;
  [[nodiscard]] std::vector<Hole> holes() const;

  std::vector<std::uint8_t> data_;
  std::vector<Part> parts_;     // only where a part does not begin where the one before ended
  std::uint64_t position_ = 0;  // stream offset after the last part
  std::uint64_t end_ = 0;       // after the last bytes, those that cannot be read too
};

}  // namespace ptkit::formats::ptk
