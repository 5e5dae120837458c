// A file that is written from its beginning on, under a random name until name(). Other users can neither
// read it meanwhile nor redirect the writes to another file.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "base/status.h"
#include "base/system/owner.h"

namespace ptkit::base {

class OutputFile {
 public:
  // Fails if `path` exists and is no regular file.
  [[nodiscard]] static Result<OutputFile> create(const std::string& path);
  OutputFile(OutputFile&& other) noexcept;
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;
  OutputFile& operator=(OutputFile&&) = delete;
  ~OutputFile();  // removes a file without its name

  // Appends. False: error() has the reason.
  [[nodiscard]] bool write(Bytes bytes);
  // Overwrites earlier bytes; write() appends as before. False: error() has the reason.
  [[nodiscard]] bool write_at(std::uint64_t offset, Bytes bytes);
  // Drops bytes after `size`, or adds zeros up to there: write() continues there. False: error() has the
  // reason.
  bool cut(std::uint64_t size);
  // Gives the file its name, and replaces an earlier file.
  [[nodiscard]] std::optional<Failure> name();
  // After the last write(). False: error() has the reason.
  [[nodiscard]] bool close(const std::optional<Owner>& owner);
  // The system's sentence for the last failure.
  [[nodiscard]] const std::string& error() const noexcept;

 private:
  struct State;
  explicit OutputFile(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace ptkit::base
