// Names for the addresses of many rows: each in the address space and at the time of its own row.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "image/image.h"
#include "symbol/symbols.h"

namespace ptkit::symbol {

inline constexpr std::int32_t kNoName = -1;

// Arrays of one length, one element per row.
struct RowPlaces {
  std::span<const std::uint64_t> ips;
  std::span<const std::uint32_t> spaces;
  std::span<const bool> known;  // of `ips`; empty: every address is known
  // Time interval [tsc, tsc + tsc_error] of a row; all three are empty for rows without times.
  std::span<const std::uint64_t> tsc;
  std::span<const std::uint32_t> tsc_error;
  std::span<const bool> time_known;
};

// What is filled, one element per row.
struct RowCodes {
  std::span<std::int32_t> codes;     // kNoName: no name is known
  std::span<std::uint64_t> offsets;  // from the begin of what is named; empty: not wanted
};

// A row is named by the code that its address space has at the begin of its interval; if nothing is mapped at
// the address then, by the code at the end of the interval. Rows without times are named by the code that was
// mapped there last. Rows of unknown time are decoded with the code at the begin of the recording, so that
// this goes before what was mapped last.

// Codes are indices in the returned names, which are distinct and live as long as `symbols`.
[[nodiscard]] std::vector<std::string_view> name_symbols(const Symbols& symbols, const image::Image& image,
                                                         const RowPlaces& rows, RowCodes out);
// Codes are indices in TraceBundle::files.
void name_files(const image::Image& image, const RowPlaces& rows, RowCodes out);

}  // namespace ptkit::symbol
