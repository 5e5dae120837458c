#include "capture/linux/output/trace_ring.h"

#include <algorithm>

#include "packet/decoder.h"

namespace ptkit::capture {

namespace {

constexpr std::size_t kPsbBytes = 16;
// Small chunks waste less of the ring; large chunks cost less time.
constexpr std::uint64_t kMinChunkBytes = 1024;
constexpr std::uint64_t kMaxChunkBytes = 64 * 1024;
constexpr std::uint64_t kChunksInRing = 64;

}  // namespace

TraceRing::TraceRing(std::uint64_t bytes)
    : limit_(bytes),
      chunk_bytes_(
          static_cast<std::size_t>(std::clamp(bytes / kChunksInRing, kMinChunkBytes, kMaxChunkBytes))) {}

void TraceRing::append(std::uint32_t stream, base::Bytes bytes) {
  const std::lock_guard lock(mutex_);
  Stream& to = streams_[stream];
  while (!bytes.empty()) {
    if (to.chunks.empty() || to.chunks.back().bytes.size() == chunk_bytes_) {
      to.chunks.push_back({next_order_++, to.end, {}, {}});
    }
    const auto part = bytes.first(std::min(bytes.size(), chunk_bytes_ - to.chunks.back().bytes.size()));
    add(to, part);
    make_room();
    bytes = bytes.subspan(part.size());
  }
}

void TraceRing::add(Stream& stream, base::Bytes part) {
  Chunk& chunk = stream.chunks.back();
  chunk.bytes.insert(chunk.bytes.end(), part.begin(), part.end());
  kept_ += part.size();
  if (!chunk.psb) find_psbs(stream, part);  // the first one of a chunk is enough
  remember(stream, part);
  stream.end += part.size();
}

// Finds PSBs in `part`, which is appended to the stream next, and across its beginning.
void TraceRing::find_psbs(Stream& stream, base::Bytes part) {
  std::vector<std::uint8_t> joint(stream.tail);
  const auto head = part.first(std::min(part.size(), kPsbBytes - 1));
  joint.insert(joint.end(), head.begin(), head.end());
  if (const std::uint64_t at = packet::find_psb(joint, 0); at < joint.size())
    note_psb(stream, stream.end - stream.tail.size() + at);
  if (const std::uint64_t at = packet::find_psb(part, 0); at < part.size()) note_psb(stream, stream.end + at);
}

// A PSB that ends in a chunk's first bytes may begin in the chunk before, or in a dropped chunk.
void TraceRing::note_psb(Stream& stream, std::uint64_t offset) {
  for (auto chunk = stream.chunks.rbegin(); chunk != stream.chunks.rend(); ++chunk) {
    if (offset < chunk->begin) continue;
    chunk->psb = std::min(chunk->psb.value_or(offset), offset);
    stream.last_psb_chunk = std::max(stream.last_psb_chunk, chunk->begin);
    return;
  }
}

void TraceRing::remember(Stream& stream, base::Bytes part) {
  std::vector<std::uint8_t>& tail = stream.tail;
  const auto last = part.last(std::min(part.size(), kPsbBytes - 1));
  tail.insert(tail.end(), last.begin(), last.end());
  if (tail.size() > kPsbBytes - 1) tail.erase(tail.begin(), tail.end() - (kPsbBytes - 1));
}

void TraceRing::make_room() {
  while (kept_ > limit_) {
    Stream* stream = victim();
    if (stream == nullptr) return;
    const std::uint64_t size = stream->chunks.front().bytes.size();
    stream->chunks.pop_front();
    kept_ -= size;
    dropped_ += size;
  }
}

// The stream that loses its first chunk next.
TraceRing::Stream* TraceRing::victim() {
  const auto older = [](const Stream* a, const Stream& b) {
    return a == nullptr || b.chunks.front().order < a->chunks.front().order;
  };
  Stream* oldest = nullptr;   // by first chunk, of all
  Stream* in_past = nullptr;  // oldest of the streams with a chunk before that of their last PSB
  std::uint64_t spared = 0;
  for (auto& [id, stream] : streams_) {
    if (stream.chunks.empty()) continue;
    if (older(oldest, stream)) oldest = &stream;
    if (stream.chunks.front().begin >= stream.last_psb_chunk) {
      spared += stream.end - stream.chunks.front().begin;
    } else if (older(in_past, stream)) {
      in_past = &stream;
    }
  }
  return in_past != nullptr && spared <= limit_ / 2 ? in_past : oldest;
}

// Empties the ring. `all`: with trace that cannot be decoded.
std::vector<TraceRing::Part> TraceRing::take(bool all) {
  std::vector<Part> parts;
  const std::lock_guard lock(mutex_);
  for (auto& [id, stream] : streams_) {
    const std::uint64_t begin = stream.chunks.empty() ? stream.end : stream.chunks.front().begin;
    std::uint64_t from = begin;
    if (begin != stream.written) {
      const auto found = std::find_if(stream.chunks.begin(), stream.chunks.end(),
                                      [](const Chunk& chunk) { return chunk.psb.has_value(); });
      if (found != stream.chunks.end()) {
        from = *found->psb;
      } else if (!all) {
        continue;
      }
    }
    if (from == stream.end && from == stream.written) continue;
    dropped_ += from - begin;
    kept_ -= stream.end - begin;
    parts.push_back({id, from - stream.written, from, std::move(stream.chunks)});
    stream.chunks.clear();
    stream.written = stream.end;
  }
  return parts;
}

void TraceRing::write(formats::PtkWriter& writer, bool all) {
  for (const Part& part : take(all)) {
    if (part.lost != 0) writer.loss(part.stream, part.lost, base::Status::RING_WRAPPED);
    for (const Chunk& chunk : part.chunks) {
      const std::uint64_t skip = part.from > chunk.begin ? part.from - chunk.begin : 0;
      if (skip >= chunk.bytes.size()) continue;
      writer.data(part.stream, base::Bytes(chunk.bytes).subspan(static_cast<std::size_t>(skip)));
    }
  }
}

void TraceRing::snapshot(formats::PtkWriter& writer) { write(writer, false); }

void TraceRing::finish(formats::PtkWriter& writer) { write(writer, true); }

std::uint64_t TraceRing::dropped_bytes() const {
  const std::lock_guard lock(mutex_);
  return dropped_;
}

std::uint64_t TraceRing::kept_bytes() const {
  const std::lock_guard lock(mutex_);
  return kept_;
}

}  // namespace ptkit::capture
