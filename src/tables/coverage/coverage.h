// Coverage of many short streams, one after the other, for fuzzers: edges in a map of the caller, or as a
// list.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "flow/decoder/decoder.h"
#include "tables/columns/edge_tally.h"

namespace ptkit::tables::coverage {

using columns::Edge;
using columns::EdgeTally;
using flow::edge_hash;

// AFL's bucket of a hit count: 0, 1, 2, 4 (3), 8 (4-7), 16 (8-15), 32 (16-31), 64 (32-127), 128.
[[nodiscard]] constexpr std::uint8_t hit_bucket(std::uint8_t count) noexcept {
  if (count <= 2) return count;
  if (count == 3) return 4;
  if (count >= 128) return 128;
  if (count >= 32) return 64;
  return static_cast<std::uint8_t>(std::bit_floor(count) * 2U);
}

enum class News : std::uint8_t { NONE = 0, COUNTS = 1, EDGES = 2 };  // the values of AFL's has_new_bits()

struct Outcome {
  std::uint64_t bytes = 0;         // of the stream
  std::uint64_t instructions = 0;  // number of executed instructions
  std::uint64_t branches = 0;      // sum of all counts
  std::size_t edges = 0;           // number of different edges
  std::size_t errors = 0;
  std::size_t gaps = 0;
  std::size_t new_edges = 0;  // see CoverageDecoder::new_edges()
  News news = News::NONE;     // valid with a virgin map
  bool whole = true;          // false: `go_on` ended the decode
};

// Maps of the caller; both may be empty.
struct Maps {
  // 2^n bytes. Counts are added up to 255: a byte never decreases, nor wraps to 0.
  std::span<std::uint8_t> hits;
  // As many bytes as `hits` (2^n without `hits`). A set bit: no count of this edge was in this bucket so far.
  // Initially 0xff everywhere. A decode clears the bits of its counts, and reports them in Outcome::news.
  std::span<std::uint8_t> virgin;
  bool clear = false;  // sets `hits` to 0 before it adds counts
};

struct ErrorRow {
  flow::FlowError error;
  std::uint64_t instruction = 0;  // number of instructions before it
  std::uint64_t order = 0;        // among events, errors and gaps
};

struct GapRow {
  flow::Gap gap;
  std::uint64_t instruction = 0;
  std::uint64_t order = 0;
};

// Arrays of the caller; those of size 0 are not filled.
struct EdgeArrays {
  std::span<std::uint64_t> from_ip;
  std::span<std::uint64_t> to_ip;
  std::span<std::uint8_t> kind;  // flow::BranchKind
  std::span<std::uint64_t> count;
};

// Copies as many edges as each array holds, in their order.
void copy_edges(std::span<const Edge> edges, const EdgeArrays& arrays) noexcept;

// Decodes streams one after the other, and keeps decoded code, so that the next stream through the same code
// only costs its packets. One thread at a time; several decoders may share a bundle.
class CoverageDecoder {
 public:
  // Uses code and configuration of the bundle, not its streams. Code that changes with time is that of the
  // start. `callback` may be empty: see code::image::ReadCallback.
  explicit CoverageDecoder(std::shared_ptr<const trace::TraceBundle> bundle,
                           const flow::FlowOptions& options = {}, code::image::ReadCallback callback = {});
  ~CoverageDecoder();
  CoverageDecoder(const CoverageDecoder&) = delete;
  CoverageDecoder& operator=(const CoverageDecoder&) = delete;

  // Decodes a raw stream. Fails only if a map has an invalid size, or if the maps overlap. `go_on` may be
  // empty; it is called every few milliseconds, and false ends the decode. An exception (out of memory)
  // drops the decoded code; the maps may have changed.
  [[nodiscard]] base::Result<Outcome> decode(base::Bytes stream, const Maps& maps = {},
                                             const std::function<bool()>& go_on = {});

  // The chunks of a ring as one stream, oldest first. Copies them if there are several with bytes; valid
  // until the next call.
  [[nodiscard]] base::Bytes join(std::span<const base::Bytes> chunks);

  // Edges of the last stream, valid until the next one.
  [[nodiscard]] std::span<const Edge> edges() const noexcept;
  // Those with a byte of the virgin map that was hit for the first time. Of an edge that shares its byte, the
  // map does not know more than of the byte.
  [[nodiscard]] std::span<const Edge> new_edges() const noexcept { return new_edges_; }
  [[nodiscard]] std::span<const ErrorRow> errors() const noexcept;
  [[nodiscard]] std::span<const GapRow> gaps() const noexcept;
  // Sorts edges() and new_edges() as in the edges table: by space, from, to and kind.
  void sort_edges();

  // The bytes of code in [first, last] may have changed: decodes them again, and calls the callback again.
  // Other code may be decoded again, too.
  void forget(std::uint64_t first = 0, std::uint64_t last = UINT64_MAX);
  // The address space at the start of streams; initially the one of all code.
  void set_space(trace::SpaceId space) noexcept { stream_.space = space; }
  // Continues with other code and configuration.
  void set_bundle(std::shared_ptr<const trace::TraceBundle> bundle);

 private:
  class Sink;
  class Unwinding;

  void run(base::Bytes stream, const std::function<bool()>& go_on, Outcome& outcome);
  void fill(const Maps& maps, Outcome& outcome);
  void compare(std::span<const std::uint8_t> hits, std::span<std::uint8_t> virgin, Outcome& outcome);
  [[nodiscard]] bool has_code_in(std::uint64_t first, std::uint64_t last) const noexcept;

  std::shared_ptr<const trace::TraceBundle> bundle_;
  flow::FlowOptions options_;
  code::image::ReadCallback callback_;
  std::unique_ptr<code::image::Image> image_;  // null after an exception, until the next decode
  std::unique_ptr<flow::CodeCachePool> pool_;
  std::unique_ptr<Sink> sink_;
  trace::Stream stream_;
  std::vector<Edge> new_edges_;
  std::vector<std::uint8_t> joined_;    // chunks of a ring
  std::vector<std::uint8_t> own_hits_;  // used if there is only a virgin map; all 0 between two decodes
};

}  // namespace ptkit::tables::coverage
