// Adds code of mapped files to a bundle, for readers that know mappings and not their times.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::formats::perf {

struct FileMapping {
  trace::SpaceId space = trace::kAnySpace;
  std::uint64_t owner = 0;  // page tables: mappings of one owner are of one process
  std::uint64_t address = 0;
  std::uint64_t size = 0;  // 0: up to the end of the file
  std::uint64_t file_offset = 0;
  std::string path;
};

struct MappedFileOptions {
  std::string own;                      // the recording's folder
  std::vector<std::string> binaries{};  // folders with copies of the files
  std::string recorded_at{};            // the file that the recorder wrote last
};

// Later mappings of a space hide earlier ones. Lists files that are missing.
void add_mapped_files(trace::TraceBundle& bundle, const MappedFileOptions& options,
                      std::span<const FileMapping> mappings);

}  // namespace ptkit::formats::perf
