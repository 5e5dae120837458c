// Coverage of many short streams, one after the other, as fuzzers want it: edges into a map that the caller
// owns, or as a list.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "aggregate/edge_tally.h"
#include "base/status.h"
#include "flow/decoder.h"

namespace ptkit::aggregate {

// Which byte of a map stands for an edge: the lowest bits of this, as many as the map's size has. Never
// changes. Kinds and address spaces do not matter.
[[nodiscard]] constexpr std::uint32_t edge_hash(std::uint64_t from, std::uint64_t to) noexcept {
  std::uint64_t mixed = from * 0x9e3779b97f4a7c15ULL + to;
  mixed ^= mixed >> 32U;
  mixed *= 0xd6e8feb86659fd93ULL;
  return static_cast<std::uint32_t>(mixed >> 32U);
}

// AFL's bucket of a hit count: 0, 1, 2, 4 (3), 8 (4-7), 16 (8-15), 32 (16-31), 64 (32-127), 128.
[[nodiscard]] constexpr std::uint8_t hit_bucket(std::uint8_t count) noexcept {
  if (count <= 2) return count;
  if (count == 3) return 4;
  if (count >= 128) return 128;
  if (count >= 32) return 64;
  return static_cast<std::uint8_t>(std::bit_floor(count) * 2U);
}

enum class News : std::uint8_t { NONE = 0, COUNTS = 1, EDGES = 2 };  // as AFL's has_new_bits() has it

struct Outcome {
  std::uint64_t bytes = 0;         // of the stream
  std::uint64_t instructions = 0;  // that were executed
  std::uint64_t branches = 0;      // the sum of all counts
  std::size_t edges = 0;           // different ones
  std::size_t errors = 0;
  std::size_t gaps = 0;
  News news = News::NONE;  // where there is a virgin map
  bool whole = true;       // false: stopped by `go_on`
};

// Where a decode puts what it finds; both may be empty.
struct Maps {
  // 2^n bytes. Hits are added to what is there, up to 255: a byte never goes back, nor to 0.
  std::span<std::uint8_t> hits;
  // As many bytes as `hits` (or 2^n, without). A bit that is set: nothing of this edge fell into this bucket
  // of hits so far. Begins as 0xff everywhere; bits of what is met are cleared, and Outcome::news tells.
  std::span<std::uint8_t> virgin;
};

struct ErrorRow {
  flow::FlowError error;
  std::uint64_t instruction = 0;  // instructions that came before it
  std::uint64_t order = 0;        // among events, errors and gaps
};

struct GapRow {
  flow::Gap gap;
  std::uint64_t instruction = 0;
  std::uint64_t order = 0;
};

// Arrays that the caller owns; those of size 0 are not wanted.
struct EdgeArrays {
  std::span<std::uint64_t> from_ip;
  std::span<std::uint64_t> to_ip;
  std::span<std::uint8_t> kind;  // flow::BranchKind
  std::span<std::uint64_t> count;
};

// Keeps the code that was decoded, so that the next stream through the same code costs what its packets cost.
// One thread at a time; decoders of their own may share a bundle.
class CoverageDecoder {
 public:
  // Code and configuration are the bundle's (its streams are not looked at); code that changes with time is
  // seen as it was at first. `callback` may be empty: see image::ReadCallback.
  explicit CoverageDecoder(std::shared_ptr<const trace::TraceBundle> bundle,
                           const flow::FlowOptions& options = {}, image::ReadCallback callback = {});
  ~CoverageDecoder();
  CoverageDecoder(const CoverageDecoder&) = delete;
  CoverageDecoder& operator=(const CoverageDecoder&) = delete;

  // Decodes a raw stream. Fails only if a map has a size that it must not have. `go_on` is asked every few
  // milliseconds, if it is given: false ends the decode.
  [[nodiscard]] base::Result<Outcome> decode(base::Bytes stream, const Maps& maps = {},
                                             const std::function<bool()>& go_on = {});

  // Of the last stream, until the next one.
  [[nodiscard]] std::span<const Edge> edges() const noexcept;
  [[nodiscard]] std::span<const ErrorRow> errors() const noexcept;
  [[nodiscard]] std::span<const GapRow> gaps() const noexcept;
  // Brings edges() into the order of the edges table: by space, from, to and kind.
  void sort_edges();
  // Copies as many edges as each array holds, in the order of edges(); returns how many there are.
  std::size_t copy_edges(const EdgeArrays& arrays) const noexcept;

  // The bytes of code in [first, last] may be others by now: what was decoded of them is decoded again, and
  // the callback is asked again. Code elsewhere may be decoded again, too.
  void forget(std::uint64_t first = 0, std::uint64_t last = UINT64_MAX);
  // The address space that streams begin in: at first the one of all code.
  void set_space(trace::SpaceId space) noexcept { stream_.space = space; }
  // Goes on with other code and configuration.
  void set_bundle(std::shared_ptr<const trace::TraceBundle> bundle);

 private:
  class Sink;

  void fill(const Maps& maps, Outcome& outcome);
  [[nodiscard]] bool has_code_in(std::uint64_t first, std::uint64_t last) const noexcept;

  std::shared_ptr<const trace::TraceBundle> bundle_;
  flow::FlowOptions options_;
  image::ReadCallback callback_;
  std::unique_ptr<image::Image> image_;
  std::unique_ptr<flow::CodeCachePool> pool_;
  std::unique_ptr<Sink> sink_;
  trace::Stream stream_;
  std::vector<std::uint8_t> own_hits_;  // where there is a virgin map alone; all 0 between two decodes
};

}  // namespace ptkit::aggregate
