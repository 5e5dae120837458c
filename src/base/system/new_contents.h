// Small files that are written at once.
#pragma once

#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace ptkit::base {

// Writes a file of these bytes, which belongs to the user that called sudo. It replaces an earlier one when
// it is complete. The failure, if there is one.
[[nodiscard]] std::optional<Failure> write_new_file(const std::string& path, Bytes bytes);

// The failure if `path` is a link, a folder, a device or a FIFO: no file is written there.
[[nodiscard]] std::optional<Failure> refused_output(const std::string& path);

// The permissions that a new file at `path` has; it is removed. 0: the system has none of this kind.
[[nodiscard]] Result<unsigned> mode_of_new_file(const std::string& path);

}  // namespace ptkit::base
