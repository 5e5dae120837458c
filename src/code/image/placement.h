// The addresses, spaces and times of code that is added to a bundle.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::code::image {

// How the bytes of a PE file lie: as on disk, or as in memory, where dumps come from.
enum class PeLayout : std::uint8_t {
  FILE,    // a section's bytes lie at PointerToRawData
  MEMORY,  // at its RVA: dumps of debuggers and of memory forensics
};

// The address, space and time of a file's code.
struct Placement {
  // ELF: the address of the lowest loadable segment; PE: the image's base. Empty: as linked (PE: or as
  // recorded, see add_pe()).
  std::optional<std::uint64_t> load_address;
  trace::SpaceId space = trace::kAnySpace;
  std::uint64_t tsc_from = trace::kTscMin;
  std::uint64_t tsc_to = trace::kTscMax;
  std::optional<PeLayout> layout{};  // of a PE file. Empty: by its contents
};

// The spaces that have a CR3 (compared as in has_cr3()); adds one if there is none.
[[nodiscard]] std::vector<trace::SpaceId> spaces_with(trace::TraceBundle& bundle, std::uint64_t cr3);
// Adds the regions from `first` on to further spaces.
void repeat_in(trace::TraceBundle& bundle, std::size_t first, std::span<const trace::SpaceId> spaces);

}  // namespace ptkit::code::image
