// The files that executed code came from: their numbers in the bundle, build-ids and names.
#pragma once

#include <map>
#include <string>

#include "capture/tracee.h"
#include "formats/ptk_writer.h"

namespace ptkit::capture {

class FileTable {
 public:
  explicit FileTable(formats::PtkWriter& writer) : writer_(writer) {}

  // The number of the mapped file; -1 for anonymous memory. What is new goes to the bundle with its names.
  [[nodiscard]] std::int32_t find(pid_t pid, const Mapping& mapping, const Memory& memory);

 private:
  [[nodiscard]] static trace::TraceBuffer contents(pid_t pid, const Mapping& mapping, const Memory& memory);

  formats::PtkWriter& writer_;
  std::map<std::string, std::int32_t> numbers_;  // by path; what has none (the vDSO) by its name
};

}  // namespace ptkit::capture
