#include "formats/common/numbered_files.h"

#include <charconv>
#include <filesystem>

#include "base/file_path.h"
#include "formats/common/files.h"

namespace ptkit::formats {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kMostFiles = 65536;

}  // namespace

std::optional<std::int64_t> number_in_name(const std::string& path, std::string_view before,
                                           std::string_view after) {
  const std::string file = base::to_bytes(base::to_path(path).filename());
  std::string_view name = file;
  if (name.size() <= before.size() + after.size() || !name.starts_with(before) || !name.ends_with(after))
    return std::nullopt;
  name = name.substr(before.size(), name.size() - before.size() - after.size());
  std::uint32_t number = 0;
  const auto parsed = std::from_chars(name.data(), name.data() + name.size(), number);
  if (parsed.ec != std::errc{} || parsed.ptr != name.data() + name.size()) return std::nullopt;
  return number;
}

std::map<std::int64_t, std::string> numbered_files(const std::string& folder, std::string_view before,
                                                   std::string_view after) {
  std::map<std::int64_t, std::string> files;
  std::error_code ignored;
  for (auto at = fs::directory_iterator(base::to_path(folder), ignored);
       at != fs::directory_iterator() && files.size() < kMostFiles; at.increment(ignored)) {
    std::string path = base::to_bytes(at->path());
    const auto number = number_in_name(path, before, after);
    if (number) files.try_emplace(*number, std::move(path));
  }
  return files;
}

base::Result<std::vector<trace::Stream>> cpu_streams(const std::string& path,
                                                     const std::map<std::int64_t, std::string>& files) {
  std::vector<trace::Stream> streams;
  for (const auto& [cpu, file] : files) {
    auto data = trace::TraceBuffer::map_file(file);
    if (!data.ok()) return data.failure();
    if (data.value().size() == 0) continue;
    trace::Stream stream;
    stream.name = file;
    stream.cpu = cpu;
    stream.data = std::move(data.value());
    streams.push_back(std::move(stream));
  }
  if (streams.empty()) return bad_file(path, "all streams are empty");
  return streams;
}

}  // namespace ptkit::formats
