// A file that is complete when it appears under its name. For .cpp files of this folder only.
#pragma once

#include <cstdio>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/status.h"

namespace ptkit::formats::perf {

// Written under another name beside it; what is not kept is removed. The first failure sticks.
class Output {
 public:
  // Devices that can be written anywhere are written as they are; pipes are refused.
  [[nodiscard]] static base::Result<Output> create(const std::string& path);
  Output(Output&& other) noexcept;
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  Output& operator=(Output&&) = delete;
  ~Output();

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
  Output(std::string path, std::string written, std::FILE* file);
  void fail(const char* what);

  std::string path_;
  std::string written_;  // what it is called until then; empty: it is written in its place
  std::unique_ptr<std::FILE, Closer> file_;
  std::uint64_t size_ = 0;
  std::optional<base::Failure> failure_;
};

// A folder in the making, beside the one that it becomes; removed with all that is in it unless it is kept.
class OutputFolder {
 public:
  // A folder that is there is replaced if it has `sign`; others are somebody's own.
  [[nodiscard]] static base::Result<OutputFolder> create(const std::string& path, const std::string& sign);
  OutputFolder(OutputFolder&& other) noexcept;
  OutputFolder(const OutputFolder&) = delete;
  OutputFolder& operator=(const OutputFolder&) = delete;
  OutputFolder& operator=(OutputFolder&&) = delete;
  ~OutputFolder();

  [[nodiscard]] const std::string& written() const noexcept { return written_; }
  // Takes the place of what is there: nothing, a file, or a folder.
  [[nodiscard]] std::optional<base::Failure> keep();

 private:
  OutputFolder(std::string path, std::string written);

  std::string path_;
  std::string written_;
};

[[nodiscard]] base::Failure cannot_write(const std::string& path, const char* what, int cause);

}  // namespace ptkit::formats::perf
