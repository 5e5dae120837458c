// A file without a name, for data that need not stay in memory: the kernel can write its pages back.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.h"
#include "base/posix/fd.h"
#include "base/status.h"

namespace ptkit::base {

class UnnamedFile {
 public:
  // Creates the file in the folder of the environment variable TMPDIR, else in /var/tmp or /tmp. It has mode
  // 0600 and no name, so that no link leads to it, and the system frees it when it is closed. Fails in a
  // folder that the system keeps in memory (tmpfs).
  [[nodiscard]] static Result<UnnamedFile> create();
  [[nodiscard]] static Result<UnnamedFile> create_in(const std::string& folder);

  [[nodiscard]] int descriptor() const noexcept { return file_.get(); }
  // Takes space on the disk, and leaves an eighth of its free space. The failure has the folder and both
  // sizes.
  [[nodiscard]] std::optional<Failure> reserve(std::uint64_t offset, std::uint64_t bytes) const;
  [[nodiscard]] bool write(std::uint64_t offset, Bytes bytes) const noexcept;

 private:
  UnnamedFile(std::string folder, Fd file) noexcept : folder_(std::move(folder)), file_(std::move(file)) {}

  std::string folder_;
  Fd file_;
};

}  // namespace ptkit::base
