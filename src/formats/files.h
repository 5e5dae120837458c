// Small helpers that several readers share: paths, failures, and words for what a file seems to be.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"
#include "trace/buffer.h"

namespace ptkit::formats {

// A stream whose first PSB lies behind this many bytes is not taken for a trace.
inline constexpr std::size_t kPsbSearchBytes = 64 * 1024;

[[nodiscard]] bool is_file(const std::string& path) noexcept;
[[nodiscard]] bool is_folder(const std::string& path) noexcept;
// `name` itself if it is absolute, else below `folder`.
[[nodiscard]] std::string join(const std::string& folder, const std::string& name);
[[nodiscard]] std::string parent_folder(const std::string& path);
[[nodiscard]] std::string without_slashes(std::string path);  // at the end

[[nodiscard]] base::Failure bad_file(const std::string& path, std::string_view what,
                                     std::uint64_t offset = 0);

// The first bytes of a file (fewer if it is shorter or cannot be read).
[[nodiscard]] std::string first_bytes(const std::string& path, std::size_t count);

// What the bytes look like, for messages: "an ELF file", "a perf.data file", "text", "12 bytes of unknown
// form".
[[nodiscard]] std::string describe(base::Bytes bytes);

[[nodiscard]] bool has_early_psb(base::Bytes bytes) noexcept;

}  // namespace ptkit::formats
