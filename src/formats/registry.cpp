#include "formats/registry.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "formats/files.h"
#include "formats/readers.h"

namespace ptkit::formats {

namespace {

// In sniffing order: raw takes what no other format wants.
const std::array kFormats{kPtkFormat,       kPerfDataFormat,     kLldbFormat,
                          kDrakvufFormat,   kSimplePtFormat,     kWindowsIntelPtFormat,
                          kLibxdcFormat,    kLibiptScriptFormat, kIpttoolFormat,
                          kGdbBtraceFormat, kXenFormat,          kBtsFormat,
                          kBts32Format,     kRawFormat};

std::string known_names() {
  std::string names;
  for (const Format& format : kFormats) names += (names.empty() ? "" : ", ") + std::string(format.name);
  return names;
}

base::Result<trace::TraceBundle> read_with(const Format& format, const std::string& path,
                                           const OpenOptions& options) {
  auto bundle = format.read(path, options);
  if (bundle.ok()) {
    bundle.value().format = format.name;
    bundle.value().source = path;
  }
  return bundle;
}

}  // namespace

std::span<const Format> formats() noexcept { return kFormats; }

base::Result<trace::TraceBundle> open(const std::string& path, const OpenOptions& options) {
  std::error_code error;
  const auto status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    return base::Failure{base::Status::IO_ERROR, 0, path + ": there is no such file or folder"};
  }
  if (status.type() == std::filesystem::file_type::none) {
    return base::Failure{base::Status::IO_ERROR, 0, path + ": " + error.message()};
  }
  for (const Format& format : kFormats) {
    if (options.format.empty() ? format.sniff(path) : options.format == format.name) {
      return read_with(format, path, options);
    }
  }
  if (options.format.empty()) {
    return bad_file(path, "no trace in this folder (formats of folders: docs/formats.md)");
  }
  return base::Failure{base::Status::BAD_CONFIG, 0,
                       "format '" + options.format + "' is not known; there are " + known_names()};
}

}  // namespace ptkit::formats
