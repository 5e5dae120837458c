// Helpers that several readers share: paths, failures, and descriptions of file contents.
#pragma once

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "base/status.h"
#include "trace/buffer.h"

namespace ptkit::formats {

// A file is not recognised as a raw trace if its first PSB stands after this many bytes.
inline constexpr std::size_t kPsbSearchBytes = 64 * 1024;

[[nodiscard]] bool is_file(const std::string& path) noexcept;
[[nodiscard]] bool is_folder(const std::string& path) noexcept;
// Returns `name` if it is absolute, else the path of `name` in `folder`.
[[nodiscard]] std::string join(const std::string& folder, const std::string& name);
[[nodiscard]] std::string parent_folder(const std::string& path);
[[nodiscard]] std::string without_slashes(std::string path);  // removes slashes at the end

[[nodiscard]] base::Failure bad_file(const std::string& path, std::string_view what,
                                     std::uint64_t offset = 0);

// Returns the first `count` bytes of a file. Returns fewer if the file is shorter or cannot be read.
[[nodiscard]] std::string first_bytes(const std::string& path, std::size_t count);

// Describes file contents for messages: "an ELF file", "a perf.data file", "a text file", "12 bytes of
// unknown form".
[[nodiscard]] std::string describe(base::Bytes bytes);

[[nodiscard]] bool has_early_psb(base::Bytes bytes) noexcept;

}  // namespace ptkit::formats
