// Ring mode: keeps the last trace bytes of all streams of a recording until a snapshot.
//
// Each stream is a queue of chunks. When the ring is full, a stream loses its oldest chunk, so the kept trace
// begins anywhere. It can be decoded from its first PSB on, and a snapshot begins there:
//
//   dropped | chunk ..PSB.. | chunk ..PSB.. | chunk ..... | chunk ..PSB.. | end of stream
//                   ^ a snapshot writes from the first PSB on     ^ last PSB: this chunk is spared
//
// A ring should hold at least four PSB periods of each busy stream; otherwise most of its trace cannot be
// decoded.
//
// The oldest chunk of all streams is dropped first. Chunks from a stream's last PSB on are spared, so that an
// idle thread keeps its end while others write megabytes. Once spared chunks fill half of the ring, only age
// counts.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <vector>

#include "formats/ptk/writer.h"

namespace ptkit::capture {

class TraceRing {
 public:
  explicit TraceRing(std::uint64_t bytes);

  // From any thread.
  void append(std::uint32_t stream, base::Bytes bytes);
  // Moves the kept trace to the bundle, after the trace of earlier snapshots. If a stream lost bytes since
  // then, writes a loss of that many bytes first. A stream without a PSB waits for its next PSB. While the
  // bundle is written, append() continues with an empty ring.
  void snapshot(formats::PtkWriter& writer);
  // Writes the last snapshot, with trace that cannot be decoded and with losses at the ends of streams.
  void finish(formats::PtkWriter& writer);

  [[nodiscard]] std::uint64_t dropped_bytes() const;  // bytes that no snapshot has
  [[nodiscard]] std::uint64_t kept_bytes() const;

 private:
  struct Chunk {
    std::uint64_t order = 0;  // age: order of creation among the chunks of all streams
    std::uint64_t begin = 0;  // stream offset
    std::vector<std::uint8_t> bytes;
    std::optional<std::uint64_t> psb;  // stream offset of the first PSB that begins in it
  };
  struct Stream {
    std::deque<Chunk> chunks;
    std::uint64_t end = 0;             // appended bytes
    std::uint64_t written = 0;         // stream offset up to which the bundle has bytes or losses
    std::uint64_t last_psb_chunk = 0;  // stream offset of the newest chunk with a PSB
    std::vector<std::uint8_t> tail;    // the last bytes: a PSB may begin in them
  };
  // The part of one stream in a snapshot.
  struct Part {
    std::uint32_t stream = 0;
    std::uint64_t lost = 0;  // lost bytes before it
    std::uint64_t from = 0;  // stream offset
    std::deque<Chunk> chunks;
  };

  void add(Stream& stream, base::Bytes part);
  static void find_psbs(Stream& stream, base::Bytes part);
  static void note_psb(Stream& stream, std::uint64_t offset);
  static void remember(Stream& stream, base::Bytes part);
  void make_room();
  [[nodiscard]] Stream* victim();
  [[nodiscard]] std::vector<Part> take(bool all);
  void write(formats::PtkWriter& writer, bool all);

  const std::uint64_t limit_;
  const std::size_t chunk_bytes_;
  mutable std::mutex mutex_;  // guards what follows
  std::map<std::uint32_t, Stream> streams_;
  std::uint64_t kept_ = 0;
  std::uint64_t dropped_ = 0;
  std::uint64_t next_order_ = 0;
};

}  // namespace ptkit::capture
