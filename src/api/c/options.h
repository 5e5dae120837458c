// The options of a C program, checked.
#pragma once

#include <optional>

#include "code/image/pe/pe_layout.h"
#include "flow/decoder/decoder.h"
#include "ptkit.h"
#include "trace/bundle.h"

namespace ptkit::api::c {

struct Settings {
  std::size_t map_size = std::size_t{1} << 16U;
  flow::FlowOptions flow;
  trace::Configuration configuration;
  ptkit_read_code read_code = nullptr;
  void* read_code_argument = nullptr;
};

// `options` may be null. It may be shorter than ours (members that it lacks are 0), or longer (members that
// we do not know must be 0).
[[nodiscard]] base::Result<Settings> read_options(const ptkit_options* options);

// Where an image or code is loaded.
struct LoadLocation {
  std::optional<std::uint64_t> address{};  // empty: as linked
  std::optional<std::uint64_t> cr3{};      // empty: of all processes
  std::optional<code::image::PeLayout> layout{};
};

// `place` may be null, and has another length as options have.
[[nodiscard]] base::Result<LoadLocation> read_location(const ptkit_place* place);

// Copies what fits into the caller's structure, which begins with its size; the rest of it becomes 0. Fails
// if the size is impossible.
[[nodiscard]] std::optional<base::Failure> check_size(std::size_t size, const char* structure);
void write_outcome(ptkit_outcome from, ptkit_outcome& to) noexcept;

}  // namespace ptkit::api::c
