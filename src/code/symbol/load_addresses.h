// Relative virtual addresses (RVA) of code: addresses less the load address of their file, as debuggers and
// disassemblers count them.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "code/image/files/segments.h"
#include "trace/bundle.h"

namespace ptkit::code::symbol {

// Part of the address space in which code of one file, or of no file, lies: adjacent and overlapping code
// regions of one file, space and time.
struct Mapping {
  std::uint64_t address = 0;
  std::uint64_t size = 0;
  std::int32_t file = -1;
  std::uint64_t file_offset = 0;
  std::uint64_t rva = 0;
  trace::SpaceId space = trace::kAnySpace;
  std::uint64_t tsc_from = trace::kTscMin;
  std::uint64_t tsc_to = trace::kTscMax;
};

// Thread-safe.
class LoadAddresses {
 public:
  explicit LoadAddresses(std::shared_ptr<const trace::TraceBundle> bundle);

  // The RVA of an address in a code region of a file. From the file's segments; else from a mapping of the
  // file's begin in the same space; if there is none, either, it is the offset in the file.
  [[nodiscard]] std::uint64_t rva(std::int32_t region, std::uint64_t address) const;
  // An address from `address` to `last`, all of them in the region, up to which rva() grows with the address.
  [[nodiscard]] std::uint64_t last_of_same(std::int32_t region, std::uint64_t address,
                                           std::uint64_t last) const;
  // The RVA; nullopt where rva() returns the offset in the file, which may be another number.
  [[nodiscard]] std::optional<std::uint64_t> known_rva(std::int32_t region, std::uint64_t address) const;
  // Sorted by space and address.
  [[nodiscard]] std::vector<Mapping> mappings() const;
  // The spaces that have code or lists of symbols of their own, sorted; kAnySpace: there are some of all
  // spaces.
  [[nodiscard]] std::vector<trace::SpaceId> spaces() const;

 private:
  using Begin = std::pair<trace::SpaceId, std::uint64_t>;  // space and address at which a file's begin lies
  struct File {
    std::once_flag once;
    std::vector<code::image::FileSegment> segments;  // read at the first use, guarded by `once`
    std::vector<Begin> begins;                       // sorted
    std::uint64_t linked_at = 0;                     // what its offsets count from, if these are addresses
  };

  [[nodiscard]] const std::vector<code::image::FileSegment>& segments_of(File& file, std::size_t index) const;

  std::shared_ptr<const trace::TraceBundle> bundle_;
  std::unique_ptr<File[]> files_;
};

}  // namespace ptkit::code::symbol
