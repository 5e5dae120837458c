// Files in memory, read only.
#pragma once

#include <memory>
#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace ptkit::base {

struct MappedFile {
  Bytes bytes;
  std::shared_ptr<const void> owner;  // unmaps the file; null: it is empty
};

// IO_ERROR with the path: there is no file, it is not regular, or there is no memory to map it.
[[nodiscard]] Result<MappedFile> map_file(const std::string& path);

}  // namespace ptkit::base
