// Code bytes by address space and by time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "trace/bundle.h"

namespace ptkit::image {

// Who supplied (or should have supplied) bytes at an address.
struct Provenance {
  std::int32_t region = -1;  // index in the bundle's code regions, -1: none covers the address
  std::int32_t file = -1;    // index in TraceBundle::files
  std::uint64_t region_address = 0;
  std::uint64_t region_size = 0;
};

// Bytes from an address on.
struct Source {
  base::Bytes bytes;
  std::int32_t file = -1;         // index in TraceBundle::files, -1: not from a file
  std::uint64_t file_offset = 0;  // of the first byte
};

// Asked for addresses for which no region has bytes: fills the start of `out`, returns how many bytes it has.
// Asked for whole pages first, then from the address on; answers are kept. May be called from several threads
// at once.
using ReadCallback =
    std::function<std::size_t(trace::SpaceId space, std::uint64_t address, std::span<std::uint8_t> out)>;

// Whether CR3 is one of the space's (compared without PCID and NR bits).
[[nodiscard]] bool has_cr3(const trace::Space& space, std::uint64_t cr3) noexcept;

struct ImageState;  // what an image and its views share
class CodeLayer;
struct CodeSpot;

// What one address space looked like for a while. Constant in [valid_from, valid_to).
class CodeView {
 public:
  // Copies up to out.size() bytes at `address`, across adjacent regions; returns how many there are from
  // `address` on.
  [[nodiscard]] std::size_t read(std::uint64_t address, std::span<std::uint8_t> out) const;
  // Contiguous bytes at `address` without a copy (may be shorter than what read() can join); empty if none.
  // Never calls the callback: has its bytes only once read() got them.
  [[nodiscard]] base::Bytes bytes_at(std::uint64_t address) const;
  // The same bytes, with the file that they are from.
  [[nodiscard]] Source source_at(std::uint64_t address) const;
  [[nodiscard]] Provenance provenance(std::uint64_t address) const;
  [[nodiscard]] std::uint32_t id() const noexcept {
    return id_;
  }  // differs between views; a key for caches of decoded code
  [[nodiscard]] std::uint64_t valid_from() const noexcept { return valid_from_; }
  [[nodiscard]] std::uint64_t valid_to() const noexcept { return valid_to_; }
  [[nodiscard]] trace::SpaceId space() const noexcept { return space_; }

 private:
  friend struct ImageState;
  [[nodiscard]] CodeSpot spot(std::uint64_t address) const;
  [[nodiscard]] base::Bytes region_bytes(const CodeSpot& at, std::uint64_t address) const noexcept;

  ImageState* state_ = nullptr;
  const CodeLayer* own_ = nullptr;     // of the space
  const CodeLayer* shared_ = nullptr;  // of all of them
  trace::SpaceId space_ = trace::kAnySpace;
  std::uint32_t id_ = 0;
  std::uint64_t valid_from_ = trace::kTscMin;
  std::uint64_t valid_to_ = trace::kTscMax;
};

class Image {
 public:
  explicit Image(std::shared_ptr<const trace::TraceBundle> bundle, ReadCallback callback = {});

  // The view of a space at a time; lives as long as the image or a copy of it. Thread-safe.
  [[nodiscard]] const CodeView& view(trace::SpaceId space, std::uint64_t tsc) const;
  // The space that has this CR3 (compared without PCID and NR bits), or `otherwise`.
  [[nodiscard]] trace::SpaceId space_of_cr3(std::uint64_t cr3, trace::SpaceId otherwise) const noexcept;
  [[nodiscard]] const trace::TraceBundle& bundle() const noexcept;
  [[nodiscard]] const ReadCallback& callback() const noexcept;
  [[nodiscard]] bool empty() const noexcept;  // no code at all: flow is not possible

 private:
  std::shared_ptr<ImageState> state_;  // shared by copies, so that views outlive any one of them
};

}  // namespace ptkit::image
