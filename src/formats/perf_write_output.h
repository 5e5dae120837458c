// Files and folders that are complete when they appear under their names. For .cpp files of this folder only.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/new_file.h"
#include "base/status.h"

namespace ptkit::formats::perf {

// What is not kept is removed. The first failure sticks.
class Output {
 public:
  [[nodiscard]] static base::Result<Output> create(const std::string& path);

  void put(base::Bytes bytes);
  void put_at(std::uint64_t offset, base::Bytes bytes);  // over what was written before
  void skip_to(std::uint64_t offset);                    // a hole
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  [[nodiscard]] bool failed() const noexcept { return failure_.has_value(); }
  // Gives it its name.
  [[nodiscard]] std::optional<base::Failure> keep();

 private:
  struct Closer {
    void operator()(std::FILE* file) const noexcept { static_cast<void>(std::fclose(file)); }
  };
  Output(std::string path, base::NewFile unnamed, std::FILE* file);
  void fail(const char* what);

  std::string path_;
  base::NewFile unnamed_;
  std::unique_ptr<std::FILE, Closer> file_;
  std::uint64_t size_ = 0;
  std::optional<base::Failure> failure_;
};

// A folder that is there is replaced if it has `sign`: ptkit wrote it.
[[nodiscard]] base::Result<base::NewFolder> create_folder(const std::string& path, const std::string& sign);

}  // namespace ptkit::formats::perf
