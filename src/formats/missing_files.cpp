#include "formats/missing_files.h"

#include <algorithm>
#include <filesystem>

#include "formats/json.h"

namespace ptkit::formats {

namespace {

namespace fs = std::filesystem;

constexpr const char* kOutside = "outside_files";
constexpr int kMostDepth = 1;  // no recording has folders in its folders
constexpr std::size_t kMostEntries = 1'000'000;

Json metadata_of(const trace::TraceBundle& bundle) {
  const Json meta = Json::parse(bundle.metadata, nullptr, false);
  return meta.is_object() ? meta : Json::object();
}

void put_metadata(trace::TraceBundle& bundle, const Json& meta) {
  bundle.metadata = meta.dump(-1, ' ', false, Json::error_handler_t::replace);
}

const char* name_of(OutsideUse use) { return use == OutsideUse::CODE ? "code" : "trace"; }

}  // namespace

void list_missing_files(trace::TraceBundle& bundle, std::span<const MissingFile> files) {
  if (files.empty()) return;
  Json meta = metadata_of(bundle);
  for (const MissingFile& file : files) {
    Json object = {{"path", file.path}};
    if (!file.build_id.empty()) object["build_id"] = file.build_id;
    if (!file.reason.empty()) object["reason"] = file.reason;
    meta["missing_files"].push_back(std::move(object));
  }
  put_metadata(bundle, meta);
}

bool is_outside(const std::string& folder, const std::string& path) {
  std::error_code error;
  const fs::path inside = fs::weakly_canonical(folder, error);
  if (error) return true;
  const fs::path file = fs::weakly_canonical(path, error);
  if (error) return true;
  return std::mismatch(inside.begin(), inside.end(), file.begin(), file.end()).first != inside.end();
}

std::vector<OutsideFile> links_to_elsewhere(const std::string& folder) {
  std::vector<OutsideFile> links;
  std::error_code ignored;
  std::size_t seen = 0;
  for (auto at = fs::recursive_directory_iterator(folder, ignored);
       at != fs::recursive_directory_iterator() && ++seen <= kMostEntries; at.increment(ignored)) {
    if (at.depth() == kMostDepth) at.disable_recursion_pending();
    if (at->is_symlink(ignored) && is_outside(folder, at->path().string()))
      links.push_back({at->path().string(), OutsideUse::TRACE});
  }
  std::sort(links.begin(), links.end(),
            [](const OutsideFile& a, const OutsideFile& b) { return a.path < b.path; });
  return links;
}

void list_outside_files(trace::TraceBundle& bundle, std::span<const OutsideFile> files) {
  if (files.empty()) return;
  Json meta = metadata_of(bundle);
  for (const OutsideFile& file : files)
    meta[kOutside].push_back({{"path", file.path}, {"use", name_of(file.use)}});
  put_metadata(bundle, meta);
}

std::vector<std::string> outside_files(const trace::TraceBundle& bundle, OutsideUse use) {
  std::vector<std::string> paths;
  const Json meta = metadata_of(bundle);
  const auto list = meta.find(kOutside);
  if (list == meta.end() || !list->is_array()) return paths;
  for (const Json& file : *list) {
    if (file.is_object() && file.value("use", Json()) == Json(name_of(use)) && file.contains("path") &&
        file["path"].is_string())
      paths.push_back(file["path"].get<std::string>());
  }
  return paths;
}

}  // namespace ptkit::formats
