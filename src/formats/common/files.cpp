#include "formats/common/files.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/file_path.h"
#include "base/system/file_reader.h"
#include "packet/decoder.h"

namespace ptkit::formats {

namespace fs = std::filesystem;

bool is_file(const std::string& path) noexcept {
  std::error_code ignored;
  return fs::is_regular_file(base::to_path(path), ignored);
}

bool is_folder(const std::string& path) noexcept {
  std::error_code ignored;
  return fs::is_directory(base::to_path(path), ignored);
}

std::string join(const std::string& folder, const std::string& name) {
  return base::to_bytes(base::to_path(folder) / base::to_path(name));
}

std::string parent_folder(const std::string& path) {
  const auto parent = base::to_path(path).parent_path();
  return parent.empty() ? "." : base::to_bytes(parent);
}

std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

base::Failure bad_file(const std::string& path, std::string_view what, std::uint64_t offset) {
  return {base::Status::BAD_FILE, offset, path + ": " + std::string(what)};
}

std::string first_bytes(const std::string& path, std::size_t count) {
  std::string bytes(count, '\0');
  const auto file = base::FileReader::open(path);
  if (!file.ok()) return {};
  bytes.resize(file.value().read(0, {reinterpret_cast<std::uint8_t*>(bytes.data()), bytes.size()}));
  return bytes;
}

namespace {

struct Magic {
  std::string_view bytes;
  std::string_view name;
};

constexpr std::array kMagics{
    Magic{"\x7f"
          "ELF",
          "an ELF file"},
    Magic{"PERFILE2", "a perf.data file"},
    Magic{"\x28\xb5\x2f\xfd", "a zstd-compressed file"},
    Magic{"\x1f\x8b", "a gzip-compressed file"},
    Magic{"PK\x03\x04", "a zip archive"},
    Magic{"\x04\x22\x4d\x18", "an LZ4-compressed file"},
    Magic{"\xfd"
          "7zXZ",
          "an xz-compressed file"},
    Magic{"HONEYBEE", "a Honeybee hive"},
    Magic{"<btrace", "a gdb btrace document"},
    Magic{"MZ", "a program for Windows or DOS"},
};

bool is_text(base::Bytes bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) {
    return (byte >= 0x20 && byte < 0x7f) || byte == '\n' || byte == '\r' || byte == '\t';
  });
}

}  // namespace

std::string describe(base::Bytes bytes) {
  if (bytes.empty()) return "an empty file";
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  for (const Magic& magic : kMagics) {
    if (text.substr(0, magic.bytes.size()) == magic.bytes) return std::string(magic.name);
  }
  if (is_text(bytes.first(std::min<std::size_t>(bytes.size(), 4096)))) return "a text file";
  return std::to_string(bytes.size()) + " bytes of unknown form";
}

bool has_early_psb(base::Bytes bytes) noexcept {
  const base::Bytes head = bytes.first(std::min(bytes.size(), kPsbSearchBytes));
  return packet::find_psb(head, 0) < head.size();
}

}  // namespace ptkit::formats
