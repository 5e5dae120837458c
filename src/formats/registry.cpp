#include "formats/registry.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/file_path.h"
#include "formats/common/files.h"
#include "formats/common/missing_files.h"
#include "formats/common/readers.h"

namespace ptkit::formats {

namespace {

// In sniffing order. raw is last: it accepts any file with a PSB. Readers in Python (python/ptkit/readers)
// come between these.
const std::array kFormats{kPtkFormat,     kPerfDataFormat, kLldbFormat,  kLibxdcFormat, kLibiptScriptFormat,
                          kIpttoolFormat, kBtsFormat,      kBts32Format, kRawFormat};

std::string known_names() {
  std::string names;
  for (const Format& format : kFormats) names += (names.empty() ? "" : ", ") + std::string(format.name);
  return names;
}

base::Result<trace::TraceBundle> named(base::Result<trace::TraceBundle> bundle, const Format& format,
                                       const std::string& source) {
  if (bundle.ok()) {
    bundle.value().format = format.name;
    bundle.value().source = source;
  }
  return bundle;
}

base::Failure unknown_format(const std::string& name) {
  return {base::Status::BAD_CONFIG, 0, "unknown format '" + name + "'; known formats: " + known_names()};
}

}  // namespace

std::span<const Format> formats() noexcept { return kFormats; }

const Format* find_format(const std::string& path) {
  const auto found = std::ranges::find_if(kFormats, [&](const Format& format) { return format.sniff(path); });
  return found == kFormats.end() ? nullptr : &*found;
}

const Format* find_format_of_bytes(base::Bytes bytes) {
  const auto fits = [&](const Format& format) {
    return format.sniff_bytes != nullptr && format.sniff_bytes(bytes);
  };
  const auto found = std::ranges::find_if(kFormats, fits);
  return found == kFormats.end() ? nullptr : &*found;
}

static const Format* format_named(const std::string& name) {
  const auto found = std::ranges::find(kFormats, name, &Format::name);
  return found == kFormats.end() ? nullptr : &*found;
}

base::Result<trace::TraceBundle> open(const std::string& path, const OpenOptions& options) {
  std::error_code error;
  const auto status = std::filesystem::status(base::to_path(path), error);
  if (status.type() == std::filesystem::file_type::not_found) {
    return base::Failure{base::Status::IO_ERROR, 0, path + ": no such file or folder"};
  }
  if (status.type() == std::filesystem::file_type::none) {
    return base::Failure{base::Status::IO_ERROR, 0, path + ": " + error.message()};
  }
  const Format* const format = options.format.empty() ? find_format(path) : format_named(options.format);
  if (format == nullptr) {
    return options.format.empty()
               ? bad_file(path, "no trace in this folder (formats of folders: docs/formats.md)")
               : unknown_format(options.format);
  }
  auto bundle = named(format->read(path, options), *format, path);
  if (bundle.ok() && !format->names_files && is_folder(path))
    list_outside_files(bundle.value(), find_outside_links(path));
  return bundle;
}

base::Result<trace::TraceBundle> open_bytes(const std::string& name, const trace::TraceBuffer& bytes,
                                            const OpenOptions& options) {
  const Format* const format =
      options.format.empty() ? find_format_of_bytes(bytes.bytes()) : format_named(options.format);
  if (format == nullptr) return unknown_format(options.format);
  if (format->read_bytes == nullptr) {
    return base::Failure{base::Status::UNSUPPORTED, 0,
                         name + ": a recording of format '" + options.format +
                             "' is several files and cannot be read from a pipe; save the files to a "
                             "folder and open the folder"};
  }
  return named(format->read_bytes(name, bytes, options), *format, name);
}

}  // namespace ptkit::formats
