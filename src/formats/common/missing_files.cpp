#include "formats/common/missing_files.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "base/file_path.h"
#include "formats/common/json.h"

namespace ptkit::formats {

namespace {

namespace fs = std::filesystem;

constexpr const char* kOutside = "outside_files";
constexpr int kMostDepth = 1;  // a recording's subfolders have no subfolders
constexpr std::size_t kMostEntries = 1'000'000;

Json metadata_of(const trace::TraceBundle& bundle) {
  const Json meta = Json::parse(bundle.metadata, nullptr, false);
  return meta.is_object() ? meta : Json::object();
}

void put_metadata(trace::TraceBundle& bundle, const Json& meta) {
  bundle.metadata = meta.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Resolves all links; returns an empty path on failure. weakly_canonical() makes two system calls for each
// part of the path, so that it is used only for paths that do not exist.
fs::path resolved(const fs::path& path) {
  std::error_code error;
  fs::path found = fs::canonical(path, error);
  if (error) found = fs::weakly_canonical(path, error);
  return error ? fs::path() : found;
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

RecordingFolder::RecordingFolder(std::string path) : path_(std::move(path)) {
  while (path_.ends_with('/')) path_.pop_back();
}

bool RecordingFolder::is_outside(const std::string& file) {
  if (is_below_without_links(file)) return false;
  if (!canonical_) canonical_ = resolved(base::to_path(path_ + '/'));
  const fs::path resolved_path = resolved(base::to_path(file));
  if (canonical_->empty() || resolved_path.empty()) return true;
  return std::mismatch(canonical_->begin(), canonical_->end(), resolved_path.begin(), resolved_path.end())
             .first != canonical_->end();
}

// Takes one system call for most files. Resolving all links of a path takes one for each of its folders.
bool RecordingFolder::is_below_without_links(const std::string& file) const {
  if (file.size() <= path_.size() || !file.starts_with(path_) || file[path_.size()] != '/') return false;
  for (std::size_t at = path_.size(); at != std::string::npos;) {
    const std::size_t end = file.find('/', at + 1);
    const std::string_view name = std::string_view(file).substr(at + 1, end - at - 1);
    std::error_code ignored;
    if (name == "..") return false;
    const fs::file_type type = fs::symlink_status(base::to_path(file.substr(0, end)), ignored).type();
    if (type != fs::file_type::regular && type != fs::file_type::directory) return false;
    at = end;
  }
  return true;
}

std::vector<OutsideFile> find_outside_links(const std::string& folder) {
  std::vector<OutsideFile> links;
  RecordingFolder own(folder);
  std::error_code ignored;
  std::size_t seen = 0;
  for (auto at = fs::recursive_directory_iterator(base::to_path(folder), ignored);
       at != fs::recursive_directory_iterator() && ++seen <= kMostEntries; at.increment(ignored)) {
    if (at.depth() == kMostDepth) at.disable_recursion_pending();
    if (!at->is_symlink(ignored)) continue;
    std::string path = base::to_bytes(at->path());
    if (own.is_outside(path)) links.push_back({std::move(path), OutsideUse::TRACE});
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
  if (bundle.metadata.find(kOutside) == std::string::npos) return paths;  // faster than reading the JSON
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
