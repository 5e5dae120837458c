#include "formats/mapped_files/binaries.h"

#include <algorithm>
#include <cstdlib>

#include "base/paths.h"
#include "base/system/file_identity.h"
#include "base/system/this_linux.h"
#include "code/image/elf/elf.h"
#include "code/image/files/contradictions.h"
#include "formats/common/files.h"
#include "formats/common/first_names.h"
#include "formats/common/missing_files.h"
#include "formats/perf_event/jit.h"
#include "trace/warning_codes.h"

namespace ptkit::formats::perf {
namespace {

Mapping recorded_mapping(const FileMapping& from) {
  return {.owner = from.owner,
          .address = from.address,
          .size = from.size,
          .file_offset = from.file_offset,
          .path = from.path};
}

std::string variable(const char* name, const std::string& otherwise) {
  const char* const value = std::getenv(name);
  return value != nullptr && *value != '\0' ? value : otherwise;
}

// Returns the paths that a build-id cache of perf has for a file of this build-id.
std::vector<std::string> in_cache(const std::string& folder, const trace::BuildId& build_id) {
  std::vector<std::string> paths;
  for (const std::string& id : build_id.candidates()) {
    if (folder.empty() || id.size() < 3) continue;
    const std::string path = folder + "/.build-id/" + id.substr(0, 2) + "/" + id.substr(2);
    for (const char* const name : {"/elf", "/vdso", ""}) paths.push_back(path + name);
  }
  return paths;
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

void Binaries::map_contents(trace::CodeRegion& region) {
  const trace::TraceBuffer& contents = bundle_.files[static_cast<std::size_t>(region.file)].contents;
  const auto [found, added] = parts_.try_emplace(region.file);
  if (added) found->second = code::image::mapped_parts(contents.bytes());
  std::uint64_t end = found->second.empty() ? contents.size() : 0;
  for (const code::image::FilePart& part : found->second) {
    if (part.begin <= region.file_offset) end = part.end;
  }
  const std::uint64_t left = end - std::min(region.file_offset, end);
  if (region.size == 0) region.size = left;
  if (left == 0) return;
  region.bytes = contents.slice(static_cast<std::size_t>(region.file_offset),
                                static_cast<std::size_t>(std::min(region.size, left)));
}

bool Binaries::Wanted::operator<(const Wanted& other) const {
  return std::tie(path, id, number, parts, others) <
         std::tie(other.path, other.id, other.number, other.parts, other.others);
}

trace::BuildId Binaries::build_id_of(const Mapping& mapping) const {
  trace::BuildId id{mapping.build_id, false};
  if (const auto known = build_ids_.find(mapping.path); id.empty() && known != build_ids_.end())
    id = known->second;
  return id;
}

std::int32_t Binaries::find(const Mapping& mapping) {
  Wanted wanted{mapping.path, build_id_of(mapping), {}, {}, {}};
  if (wanted.id.empty() && !is_memory(mapping.path)) {
    wanted.number = mapping.number;
    wanted.parts = mappings_.parts_of(mapping);
    wanted.others = mappings_.other_parts_of(mapping);
  }
  const auto [found, added] = found_.try_emplace(wanted, -1);
  if (added) found->second = add(wanted);
  return found->second;
}

// Order: the user's folders, the recorded path, caches.
std::vector<std::string> Binaries::candidates(const std::string& path, const trace::BuildId& id) const {
  std::vector<std::string> out;
  const auto add_all = [&out](const std::vector<std::string>& paths) {
    out.insert(out.end(), paths.begin(), paths.end());
  };
  const bool is_path = path.starts_with('/');
  // "(deleted)" marks a replaced file: the recorded path holds another file now. Copies have the plain name.
  const std::string name(base::without_mark(path));
  for (const std::string& folder : folders_) {
    if (is_path) add_all({folder + name, folder + name.substr(name.rfind('/'))});
    add_all(in_cache(folder, id));
  }
  if (is_path) out.push_back(path);
  const std::string home = variable("HOME", "/root");
  add_all(in_cache(home + "/.debug", id));
  const std::string cache = variable("XDG_CACHE_HOME", home + "/.cache") + "/debuginfod_client";
  for (const std::string& one : id.candidates())
    out.push_back(variable("DEBUGINFOD_CACHE_PATH", cache) + "/" + one + "/executable");
  add_all(in_cache("/usr/lib", id));
  add_all(in_cache("/usr/lib/debug", id));
  return out;
}

// Says what the recording and a file without a recorded build-id do not agree on.
std::string Binaries::contradiction(base::Bytes contents, const std::string& where,
                                    const Wanted& wanted) const {
  const auto here = is_here_ && where == wanted.path && wanted.number.inode != 0 ? base::file_identity(where)
                                                                                 : std::nullopt;
  // Some file systems show other device numbers to programs than to perf. Such numbers say nothing.
  if (here && here->device == base::linux_device(wanted.number.major, wanted.number.minor) &&
      here->number != wanted.number.inode) {
    return "is another file now (inode " + std::to_string(here->number) + ", recorded " +
           std::to_string(wanted.number.inode) + ")";
  }
  return code::image::mapping_contradiction(contents, wanted.parts, wanted.others);
}

bool Binaries::accept(trace::TraceBuffer contents, const std::string& where, const Wanted& wanted,
                      trace::ImageFile& file, Refusal& refusal) {
  // A path that the recording chose may name any file of the user.
  const bool chosen = where == file.path && own_.is_outside(where) &&
                      std::ranges::all_of(folders_, [&](const std::string& folder) {
                        return RecordingFolder(folder).is_outside(where);
                      });
  const base::Bytes bytes = contents.bytes();
  if (const std::string machine = code::image::other_machine(bytes); !machine.empty()) {
    refusal.reason = where + " " + machine;
    return false;
  }
  if (chosen && code::image::mapped_parts(bytes).empty()) {
    refusal.reason = where + " is neither an ELF nor a PE file: its bytes are not used as code";
    return false;
  }
  const std::string id = code::image::elf_build_id(bytes);
  if (!wanted.id.empty() && !wanted.id.is_of(id)) {
    refusal.reason = where + " has " + (id.empty() ? "none" : id);
    return false;
  }
  if (code::image::is_debug_only(bytes)) {
    refusal.reason = where + " has debug information only";
    return false;
  }
  if (const std::string problem = wanted.id.empty() ? contradiction(bytes, where, wanted) : std::string();
      !problem.empty()) {
    refusal.reason = refusal.contradiction = where + " " + problem;
    return false;
  }
  if (chosen && wanted.id.empty()) outside_.push_back({.path = where, .use = OutsideUse::CODE});
  file.build_id = id;
  file.contents = std::move(contents);
  return true;
}

std::int32_t Binaries::add(const Wanted& wanted) {
  trace::ImageFile file{wanted.path, wanted.id.text, {}, {}};
  std::string location;
  Refusal refusal;
  const auto accept_any = [&](trace::TraceBuffer contents, const std::string& where) {
    file.contents = std::move(contents);
    location = where;
    return true;
  };
  const auto accept_checked = [&](trace::TraceBuffer contents, const std::string& where) {
    location = where;
    return accept(std::move(contents), where, wanted, file, refusal);
  };
  const auto is_found = [&] {
    if (is_foreign_) return false;
    if (accept_first(in_cache(debug_folder_, wanted.id), accept_any)) return true;
    if (accept_first(candidates(wanted.path, wanted.id), accept_checked)) return true;
    location.clear();
    return wanted.path == "[vdso]" && !wanted.id.empty() &&
           accept(own_vdso(), "this system", wanted, file, refusal);
  };
  const FileKey key{wanted.path, wanted.id.text, wanted.number};
  if (!is_found()) {
    location.clear();
    // perf does not save contents of memory.
    if (!is_foreign_ && !wanted.path.empty() && !is_memory(wanted.path))
      missing_.try_emplace(key, refusal.reason);
    if (!refusal.contradiction.empty())
      refused_.try_emplace(wanted.path, std::pair(key, refusal.contradiction));
  } else {
    accepted_.insert(key);
    if (wanted.id.empty() && !code::image::mapped_parts(file.contents.bytes()).empty()) note_time(location);
  }
  const auto [known, is_new] = by_location_.try_emplace({wanted.path, wanted.id, location},
                                                        static_cast<std::int32_t>(bundle_.files.size()));
  if (is_new) bundle_.files.push_back(std::move(file));
  return known->second;
}

void Binaries::recorded_at(const std::string& recording) {
  if (const auto file = base::file_identity(recording)) recorded_ns_ = file->time_ns;
}

void Binaries::note_time(const std::string& location) {
  constexpr std::int64_t kTolerance = 2'000'000'000;  // file systems round times
  const auto here = base::file_identity(location);
  if (here && here->time_ns > recorded_ns_ && here->time_ns - recorded_ns_ > kTolerance)
    newer_.insert(location);
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
  for (const auto& [file, reason] : missing_) {
    const auto& [path, id, number] = file;
    const bool is_listed = !files.empty() && files.back().path == path && files.back().build_id == id;
    if (!is_listed && !accepted_.contains(file)) files.push_back({path, id, reason});
  }
  list_missing_files(bundle_, files);
  list_outside_files(bundle_, outside_);
  warn_of_doubts();
}

void Binaries::warn_of_doubts() {
  FirstNames refused("; ");
  for (const auto& [path, one] : refused_) {
    const auto& [file, contradiction] = one;
    refused.add(contradiction + (accepted_.contains(file) ? " (other mappings agree, and use it)" : ""));
  }
  if (!refused_.empty())
    bundle_.warnings.push_back(warn(trace::WarningCode::FILES_CONTRADICT, refused_.size(), refused.text()));
  FirstNames newer("; ");
  for (const std::string& path : newer_) newer.add(path);
  if (!newer_.empty())
    bundle_.warnings.push_back(warn(trace::WarningCode::FILES_NEWER, newer_.size(), newer.text()));
}

void add_mapped_files(trace::TraceBundle& bundle, const MappedFileOptions& options,
                      std::span<const FileMapping> mappings) {
  Binaries binaries(bundle, options.own, {}, options.binaries);
  if (!options.recorded_at.empty()) binaries.recorded_at(options.recorded_at);
  for (const FileMapping& mapping : mappings) binaries.expect(recorded_mapping(mapping));
  for (const FileMapping& mapping : mappings) {
    trace::CodeRegion region;
    region.space = mapping.space;
    region.file = binaries.find(recorded_mapping(mapping));
    region.address = mapping.address;
    region.file_offset = mapping.file_offset;
    region.size = mapping.size;
    binaries.map_contents(region);
    if (region.size == 0 || region.address + (region.size - 1) < region.address) continue;
    bundle.code.push_back(std::move(region));
  }
  binaries.list_missing();
}

}  // namespace ptkit::formats::perf
