// Output files and folders that get their names when they are complete. For .cpp files of this folder only.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "base/status.h"
#include "base/system/new_folder.h"
#include "base/system/output_file.h"

namespace ptkit::formats::perf {

// A file without keep() is removed. The first failure is kept.
class Output {
 public:
  [[nodiscard]] static base::Result<Output> create(const std::string& path);

  void put(base::Bytes bytes);
  void put_at(std::uint64_t offset, base::Bytes bytes);  // overwrites earlier bytes
  void skip_to(std::uint64_t offset);                    // leaves a hole
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] bool failed() const noexcept { return failure_.has_value(); }
  // Gives the file its name.
  [[nodiscard]] std::optional<base::Failure> keep();

 private:
  Output(std::string path, base::OutputFile file);
  void flush();
  void fail();

  std::string path_;
  base::OutputFile file_;
  std::vector<std::uint8_t> unwritten_;  // bytes before size_ that the file does not have yet
  std::uint64_t size_ = 0;
  std::optional<base::Failure> failure_;
};

// An existing folder is replaced if it contains `sign`, which shows that ptkit wrote it.
[[nodiscard]] base::Result<base::NewFolder> create_folder(const std::string& path, const std::string& sign);

}  // namespace ptkit::formats::perf
