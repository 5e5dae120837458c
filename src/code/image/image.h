// Code bytes by address space and by time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "trace/bundle.h"

namespace ptkit::code::image {

// The region and file that have (or should have) the bytes at an address.
struct Provenance {
  std::int32_t region = -1;  // index in the bundle's code regions; -1: none covers the address
  std::int32_t file = -1;    // index in TraceBundle::files
  std::uint64_t region_address = 0;
  std::uint64_t region_size = 0;
  std::uint64_t last = 0;  // addresses up to here have the same region, and maybe further ones
};

// Called for addresses without bytes in any region. Fills the start of `out` and returns the number of bytes.
// Called for the whole page first, then from the address on; answers are cached. Several threads may call it
// at once.
using ReadCallback =
    std::function<std::size_t(trace::SpaceId space, std::uint64_t address, std::span<std::uint8_t> out)>;

// Whether CR3 belongs to the space (compared without PCID and NR bits).
[[nodiscard]] bool has_cr3(const trace::Space& space, std::uint64_t cr3) noexcept;

struct ImageState;  // shared by an image and its views
class CodeLayer;
struct VisibleRegion;

// The code of one address space in the time interval [valid_from, valid_to).
class CodeView {
 public:
  // Copies up to out.size() bytes at `address`, across adjacent regions. Returns the number of bytes.
  [[nodiscard]] std::size_t read(std::uint64_t address, std::span<std::uint8_t> out) const;
  // Contiguous bytes at `address` without a copy (read() may join more); empty if none. Does not call the
  // callback: its bytes are available only after read().
  [[nodiscard]] base::Bytes bytes_at(std::uint64_t address) const;
  [[nodiscard]] Provenance provenance(std::uint64_t address) const;
  // Unique per view: a key for caches of decoded code.
  [[nodiscard]] std::uint32_t id() const noexcept { return id_; }
  [[nodiscard]] std::uint64_t valid_from() const noexcept { return valid_from_; }
  [[nodiscard]] std::uint64_t valid_to() const noexcept { return valid_to_; }
  [[nodiscard]] trace::SpaceId space() const noexcept { return space_; }

 private:
  friend struct ImageState;
  [[nodiscard]] VisibleRegion visible(std::uint64_t address) const;
  [[nodiscard]] base::Bytes region_bytes(const VisibleRegion& at, std::uint64_t address) const noexcept;

  ImageState* state_ = nullptr;
  const CodeLayer* own_ = nullptr;     // regions of the space
  const CodeLayer* shared_ = nullptr;  // regions of all spaces
  trace::SpaceId space_ = trace::kAnySpace;
  std::uint32_t id_ = 0;
  std::uint64_t valid_from_ = trace::kTscMin;
  std::uint64_t valid_to_ = trace::kTscMax;
};

class Image {
 public:
  explicit Image(std::shared_ptr<const trace::TraceBundle> bundle, ReadCallback callback = {});

  // The view of a space at a time. It lives as long as the image or a copy of the image. Thread-safe.
  [[nodiscard]] const CodeView& view(trace::SpaceId space, std::uint64_t tsc) const;
  // The file that code of no file (page dumps, page caches) hides at an address; `above` is that code in a
  // space. Files of the space itself are looked for beneath code of it that stays for the whole time: other
  // code replaced what was there.
  [[nodiscard]] Provenance file_beneath(trace::SpaceId space, const Provenance& above, std::uint64_t address,
                                        std::uint64_t tsc) const;
  // The space that has this CR3 (compared without PCID and NR bits), or `otherwise`.
  [[nodiscard]] trace::SpaceId space_of_cr3(std::uint64_t cr3, trace::SpaceId otherwise) const noexcept;
  [[nodiscard]] const trace::TraceBundle& bundle() const noexcept;
  [[nodiscard]] const ReadCallback& callback() const noexcept;
  [[nodiscard]] bool empty() const noexcept;  // no code: flow cannot be decoded

 private:
  std::shared_ptr<ImageState> state_;  // shared by copies, so that views outlive any one of them
};

}  // namespace ptkit::code::image
