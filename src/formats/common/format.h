// Describes an input format: its name, the test that recognises its files, and the reader.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "trace/bundle.h"

namespace ptkit::formats {

// Facts that the user states because the input lacks them.
struct OpenOptions {
  std::string format{};                 // registry name of the format; empty: recognised by content
  std::vector<std::string> binaries{};  // folders with copies of the traced programs and libraries
  // BTS buffers: number of the record that would have been written next.
  std::optional<std::uint64_t> bts_index{};
  bool without_psb = false;  // raw streams: a PSB need not be near the start
};

struct Format {
  const char* name;         // "ptk", "lldb", "libxdc", "raw"
  const char* description;  // for docs and `ptkit info`
  // Tests cheaply whether the file or folder at the path can have this format.
  bool (*sniff)(const std::string& path);
  base::Result<trace::TraceBundle> (*read)(const std::string& path, const OpenOptions& options);
  // For bytes that were read from a pipe. nullptr: a recording of this format is several files.
  bool (*sniff_bytes)(base::Bytes bytes) = nullptr;
  base::Result<trace::TraceBundle> (*read_bytes)(const std::string& name, const trace::TraceBuffer& bytes,
                                                 const OpenOptions& options) = nullptr;
  // A document of the recording names its files. read() itself lists those outside of the recording's folder.
  bool names_files = false;
  // The reader follows the recording program's sources. No recording by that program was available to test
  // it.
  bool unverified = false;
};

}  // namespace ptkit::formats
