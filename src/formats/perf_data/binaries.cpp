#include "formats/perf_data/binaries.h"

#include <algorithm>
#include <cstdlib>

#include "base/paths.h"
#include "base/system/this_linux.h"
#include "formats/common/files.h"
#include "formats/common/missing_files.h"
#include "formats/perf_data/jit.h"
#include "image/elf.h"

namespace ptkit::formats::perf {

namespace {

std::string variable(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

// Returns the paths that a build-id cache of perf has for a file of this build-id.
std::vector<std::string> in_cache(const std::string& folder, const std::string& build_id) {
  if (folder.empty() || build_id.size() < 3) return {};
  const std::string place = folder + "/.build-id/" + build_id.substr(0, 2) + "/" + build_id.substr(2);
  return {place + "/elf", place + "/vdso", place};
}

// Calls `accept` with contents and path of each readable candidate until it returns true. False: none was
// accepted.
template <typename Accept>
bool accept_first(const std::vector<std::string>& candidates, const Accept& accept) {
  for (const std::string& candidate : candidates) {
    if (!is_file(candidate)) continue;
    auto contents = trace::TraceBuffer::map_file(candidate);
    if (contents.ok() && accept(std::move(contents.value()), candidate)) return true;
  }
  return false;
}

// Copies the vDSO of this process.
trace::TraceBuffer own_vdso() {
  const base::Bytes image = base::linux_vdso();
  return trace::TraceBuffer::from_vector({image.begin(), image.end()});
}

}  // namespace

bool is_memory(const std::string& path) {
  if (path == "[vdso]") return false;
  for (const char* const begin : {"//anon", "[", "/dev/zero", "/anon_hugepage", "/SYSV", "/memfd:"}) {
    if (path.starts_with(begin)) return true;
  }
  return !path.starts_with('/') && !path.empty();
}

void Binaries::map_contents(trace::CodeRegion& region) {
  const trace::TraceBuffer& contents = bundle_.files[static_cast<std::size_t>(region.file)].contents;
  const auto [found, added] = parts_.try_emplace(region.file);
  if (added) found->second = image::mapped_parts(contents.bytes());
  std::uint64_t end = found->second.empty() ? contents.size() : 0;
  for (const image::FilePart& part : found->second) {
    if (part.begin <= region.file_offset) end = part.end;
  }
  const std::uint64_t left = end - std::min(region.file_offset, end);
  if (region.size == 0) region.size = left;
  if (left == 0) return;
  region.bytes = contents.slice(static_cast<std::size_t>(region.file_offset),
                                static_cast<std::size_t>(std::min(region.size, left)));
}

std::int32_t Binaries::find(const std::string& path, const std::string& build_id) {
  std::string id = build_id;
  if (const auto known = build_ids_.find(path); id.empty() && known != build_ids_.end()) id = known->second;
  const auto [found, added] = found_.try_emplace({path, id}, -1);
  if (added) found->second = add(path, id);
  return found->second;
}

// Order: the user's folders, the recorded path, caches.
std::vector<std::string> Binaries::candidates(const std::string& path, const std::string& build_id) const {
  std::vector<std::string> out;
  const auto add_all = [&out](const std::vector<std::string>& paths) {
    out.insert(out.end(), paths.begin(), paths.end());
  };
  const bool is_path = path.starts_with('/');
  // "(deleted)" marks a replaced file: the recorded path holds another file now. Copies have the plain name.
  const std::string name(base::without_mark(path));
  for (const std::string& folder : folders_) {
    if (is_path) add_all({folder + name, folder + name.substr(name.rfind('/'))});
    add_all(in_cache(folder, build_id));
  }
  if (is_path) out.push_back(path);
  const std::string home = variable("HOME", "/root");
  add_all(in_cache(home + "/.debug", build_id));
  if (!build_id.empty()) {
    const std::string cache = variable("XDG_CACHE_HOME", home + "/.cache") + "/debuginfod_client";
    out.push_back(variable("DEBUGINFOD_CACHE_PATH", cache) + "/" + build_id + "/executable");
  }
  add_all(in_cache("/usr/lib", build_id));
  add_all(in_cache("/usr/lib/debug", build_id));
  return out;
}

bool Binaries::accept(trace::TraceBuffer contents, const std::string& where, trace::ImageFile& file,
                      std::string& reason) {
  // A path that the recording chose may name any file of the user.
  const bool chosen = where == file.path && own_.is_outside(where) &&
                      std::ranges::all_of(folders_, [&](const std::string& folder) {
                        return RecordingFolder(folder).is_outside(where);
                      });
  if (chosen && image::mapped_parts(contents.bytes()).empty()) {
    reason = where + " is neither an ELF nor a PE file: its bytes are not used as code";
    return false;
  }
  const std::string id = image::elf_build_id(contents.bytes());
  if (!file.build_id.empty() && id != file.build_id) {
    reason = where + " has " + (id.empty() ? "none" : id);
    return false;
  }
  if (image::is_debug_only(contents.bytes())) {
    reason = where + " has debug information only";
    return false;
  }
  if (chosen && file.build_id.empty()) outside_.push_back({.path = where, .use = OutsideUse::CODE});
  file.build_id = id;
  file.contents = std::move(contents);
  return true;
}

std::int32_t Binaries::add(const std::string& path, const std::string& build_id) {
  const auto number = static_cast<std::int32_t>(bundle_.files.size());
  bundle_.files.push_back({path, build_id, {}, {}});
  trace::ImageFile& file = bundle_.files.back();
  const auto accept_any = [&file](trace::TraceBuffer contents, const std::string&) {
    file.contents = std::move(contents);
    return true;
  };
  if (accept_first(in_cache(debug_folder_, build_id), accept_any)) return number;
  std::string reason;
  const auto accept_checked = [&](trace::TraceBuffer contents, const std::string& where) {
    return accept(std::move(contents), where, file, reason);
  };
  if (accept_first(candidates(path, build_id), accept_checked)) return number;
  if (path == "[vdso]" && !build_id.empty() && accept(own_vdso(), "this system", file, reason)) return number;
  if (path.empty() || is_memory(path)) return number;  // perf does not save contents of memory
  missing_.try_emplace({path, build_id}, reason);
  return number;
}

trace::TraceBuffer Binaries::contents_of(const std::string& path) const {
  trace::TraceBuffer found;
  const auto accept_any = [&found](trace::TraceBuffer contents, const std::string&) {
    found = std::move(contents);
    return true;
  };
  static_cast<void>(accept_first(candidates(path, {}), accept_any));
  return found;
}

std::int32_t Binaries::find_map(std::int64_t pid, bool is_here) {
  const auto [found, added] = maps_.try_emplace(pid, -1);
  if (!added) return found->second;
  std::int32_t& number = found->second;
  const std::string name = "/perf-" + std::to_string(pid) + ".map";
  std::vector<std::string> paths;
  for (const std::string& folder : folders_) paths.push_back(folder + name);
  if (is_here) paths.push_back("/tmp" + name);
  const auto read = [&](const trace::TraceBuffer& contents, const std::string& path) {
    const base::Bytes text = contents.bytes();
    number = static_cast<std::int32_t>(bundle_.files.size());
    bundle_.files.push_back(
        {path, {}, {}, read_jit_map({reinterpret_cast<const char*>(text.data()), text.size()})});
    return true;
  };
  static_cast<void>(accept_first(paths, read));
  return number;
}

void Binaries::list_missing() {
  std::vector<MissingFile> files;
  for (const auto& [file, reason] : missing_) files.push_back({file.first, file.second, reason});
  list_missing_files(bundle_, files);
  list_outside_files(bundle_, outside_);
}

}  // namespace ptkit::formats::perf
