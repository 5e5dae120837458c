// Ring mode: the last bytes of trace of a recording, over all of its streams, until they are wanted.
//
// A stream loses its oldest chunk when the ring is full, so what is kept begins anywhere; it can be decoded
// from its first PSB on, and that is where a snapshot begins to write. So a ring should have room for some
// PSB periods of each busy stream: four and more, else most of what it keeps cannot be decoded.
//
// Chunks go by age, but those from the last PSB of a stream on are spared: a thread that does little keeps
// its end while others write megabytes. All that is spared may fill half of the ring; then age alone counts.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "formats/ptk_writer.h"

namespace ptkit::capture {

class StreamRing {
 public:
  explicit StreamRing(std::uint64_t bytes);

  // From any thread.
  void append(std::uint32_t stream, base::Bytes bytes);
  // Moves what is kept to the bundle, behind what earlier snapshots wrote. Where a stream lost bytes since
  // then, a loss of that many stands there. Of a stream that has lost its last PSB nothing is moved until it
  // has another one. While the bundle is written, append() goes on with an empty ring.
  void snapshot(formats::PtkWriter& writer);
  // The last snapshot: what cannot be decoded is written too, and losses at the ends of streams are told.
  void finish(formats::PtkWriter& writer);

  [[nodiscard]] std::uint64_t dropped_bytes() const;  // that no snapshot has
  [[nodiscard]] std::uint64_t kept_bytes() const;

 private:
  struct Chunk {
    std::uint64_t order = 0;  // of its first byte among the chunks of all streams
    std::uint64_t begin = 0;  // stream offset
    std::vector<std::uint8_t> bytes;
    std::optional<std::uint64_t> psb;  // stream offset of the first PSB that begins in it
  };
  struct Stream {
    std::deque<Chunk> chunks;
    std::uint64_t end = 0;             // bytes that were appended
    std::uint64_t written = 0;         // stream offset up to which the bundle has bytes or losses
    std::uint64_t last_psb_chunk = 0;  // where the newest chunk with a PSB begins
    std::vector<std::uint8_t> tail;    // the last bytes: a PSB may begin in them
  };
  // What a snapshot writes of one stream.
  struct Part {
    std::uint32_t stream = 0;
    std::uint64_t lost = 0;  // bytes before it
    std::uint64_t from = 0;  // stream offset
    std::deque<Chunk> chunks;
  };

  void add(Stream& stream, base::Bytes part);
  static void find_psbs(Stream& stream, base::Bytes part);
  static void note_psb(Stream& stream, std::uint64_t place);
  static void remember(Stream& stream, base::Bytes part);
  void make_room();
  [[nodiscard]] Stream* victim();
  [[nodiscard]] std::vector<Part> take(bool all);
  void write(formats::PtkWriter& writer, bool all);

  const std::uint64_t limit_;
  const std::size_t chunk_bytes_;
  mutable std::mutex mutex_;  // of all below
  std::map<std::uint32_t, Stream> streams_;
  std::uint64_t kept_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t next_order_ = 0;
};

}  // namespace ptkit::capture
