#include "formats/perf_binaries.h"

#include <cstdlib>
#include <vector>

#include "formats/files.h"
#include "image/elf.h"

namespace ptkit::formats::perf {

namespace {

std::string variable(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

// Where a file of this build-id may lie.
std::string name_of(const std::string& build_id) {
  return "/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2);
}

std::vector<std::string> places(const std::string& build_id) {
  if (build_id.size() < 3) return {};
  const std::string home = variable("HOME", "/root");
  const std::string id = build_id.substr(0, 2) + "/" + build_id.substr(2);
  const std::string perf = home + "/.debug" + name_of(build_id);
  const std::string debuginfod =
      variable("DEBUGINFOD_CACHE_PATH", variable("XDG_CACHE_HOME", home + "/.cache") + "/debuginfod_client");
  return {perf + "/elf",
          perf + "/vdso",
          perf,
          debuginfod + "/" + build_id + "/executable",
          "/usr/lib/.build-id/" + id,
          "/usr/lib/debug/.build-id/" + id};
}

}  // namespace

std::int32_t Binaries::find(const std::string& path, const std::string& build_id) {
  std::string id = build_id;
  if (const auto known = build_ids_.find(path); id.empty() && known != build_ids_.end()) id = known->second;
  const auto [found, added] = found_.try_emplace({path, id}, -1);
  if (added) found->second = add(path, id);
  return found->second;
}

std::int32_t Binaries::add(const std::string& path, const std::string& build_id) {
  const auto number = static_cast<std::int32_t>(bundle_.files.size());
  bundle_.files.push_back({path, build_id, {}, {}});
  for (const char* const name : {"/elf", "/vdso"}) {
    if (folder_.empty() || build_id.size() < 3) break;
    auto contents = trace::TraceBuffer::map_file(folder_ + name_of(build_id) + name);
    if (!contents.ok()) continue;
    bundle_.files.back().contents = std::move(contents.value());
    return number;
  }
  std::vector<std::string> candidates = places(build_id);
  if (path.starts_with('/')) candidates.insert(candidates.begin(), path);
  std::string other;
  for (const std::string& candidate : candidates) {
    if (!is_file(candidate)) continue;
    auto contents = trace::TraceBuffer::map_file(candidate);
    if (!contents.ok()) continue;
    const std::string id = image::elf_build_id(contents.value().bytes());
    if (!build_id.empty() && id != build_id) {
      other = candidate + " has " + (id.empty() ? "none" : id);
      continue;
    }
    bundle_.files.back().build_id = id;
    bundle_.files.back().contents = std::move(contents.value());
    return number;
  }
  const bool named = path.starts_with('/') || path == "[vdso]";
  if (!named) return number;  // memory without a file: what was in it nobody kept
  std::string sentence = path + (build_id.empty() ? "" : " (build-id " + build_id + ")") + " is not here";
  if (!other.empty()) sentence += " (" + other + ")";
  missing_.insert(sentence + "; its instructions cannot be decoded.");
  return number;
}

std::vector<std::string> Binaries::problems() const { return {missing_.begin(), missing_.end()}; }

}  // namespace ptkit::formats::perf
