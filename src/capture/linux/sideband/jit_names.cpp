#include "capture/linux/sideband/jit_names.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <unordered_map>
#include <utility>

#include "capture/linux/files/mapped_file.h"
#include "capture/linux/process/process.h"
#include "trace/warning_codes.h"

namespace ptkit::capture {

namespace {

using Found = MappedFile::Found;
using trace::WarningCode;

constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20U;  // of a file
constexpr std::size_t kMostFiles = 256;
constexpr std::size_t kMostNames = 1'000'000;

std::uint64_t size_of(const Fd& file) {
  struct stat info {};
  return ::fstat(file.get(), &info) == 0 && info.st_size > 0 ? static_cast<std::uint64_t>(info.st_size) : 0;
}

// When bytes before `end` may have been written first. nullopt: before or after the image.
template <typename Source>
std::optional<std::uint64_t> written_after(const Source& source, std::uint64_t end) {
  if (end <= source.skipped) return std::nullopt;
  const auto mark = std::ranges::lower_bound(source.marks, end, {}, &Source::Mark::size);
  return mark == source.marks.end() ? std::nullopt : std::optional(mark->after);
}

}  // namespace

void JitNames::begin(const Process& process) {
  const std::lock_guard lock(mutex_);
  const std::optional<ProcessIdentity> identity = identity_of(process.pid);
  if (!identity) return;
  Image& image = images_.emplace_back(Image{process, identity->user});
  const std::string pid = std::to_string(identity->own_pid);
  add_source(image, "/tmp/perf-" + pid + ".map", false);
  if (kinds_ == Kinds::MAPS_AND_DUMPS) {
    const std::string name = "/jit-" + pid + ".dump";
    add_source(image, "/tmp" + name, true);
    const std::string folder = working_directory(process.pid);
    if (!folder.empty() && folder != "/tmp") add_source(image, folder + name, true);
  }
  look(image, process.tsc, false);
}

void JitNames::add_source(Image& image, const std::string& path, bool is_dump) {
  Source& source = image.sources.emplace_back(Source{path, is_dump});
  if (!image.process.begins || !open(image, source)) return;
  source.skipped = size_of(source.file);
  source.marks.push_back({image.process.tsc, source.skipped});
}

void JitNames::end(trace::SpaceId space, std::uint64_t tsc) {
  const std::lock_guard lock(mutex_);
  for (Image& image : images_) {
    if (image.process.space != space || image.ended) continue;
    look(image, tsc, false);
    image.ended = true;
  }
}

void JitNames::look(std::uint64_t tsc, bool exact) {
  const std::lock_guard lock(mutex_);
  for (Image& image : images_) {
    if (!image.ended) look(image, tsc, exact);
  }
}

void JitNames::look(Image& image, std::uint64_t tsc, bool exact) {
  for (Source& source : image.sources) {
    if (source.file.get() < 0 && !open(image, source)) continue;
    const std::uint64_t size = size_of(source.file);
    const std::uint64_t before = source.marks.empty() ? 0 : source.marks.back().size;
    if (size < before) {  // the program began the file anew
      source.marks.clear();
      source.skipped = 0;
    }
    if (size != before) source.marks.push_back({exact ? tsc : image.last_look, size});
  }
  image.last_look = tsc;
}

bool JitNames::open(const Image& image, Source& source) {
  if (refused_.contains(source.path)) return false;
  MappedFile located = locate_own_file(image.process.pid, source.path, image.user);
  if (located.found == Found::ANOTHER) {
    refused_.insert(source.path);
    warnings_.push_back(warn(WarningCode::JIT_NAMES_REFUSED).at(source.path));
  }
  if (located.found != Found::FILE) return false;
  if (open_files_ == kMostFiles) {
    limited_ = true;
    return false;
  }
  ++open_files_;
  source.file = std::move(located.file);
  return true;
}

void JitNames::executed(trace::SpaceId space, std::vector<JitExecution> executions) {
  const std::lock_guard lock(mutex_);
  executions_[space] = std::move(executions);
}

std::vector<JitExecution> JitNames::take_executions(trace::SpaceId space) {
  std::vector<JitExecution> taken = std::exchange(executions_[space], {});
  std::ranges::sort(taken, {}, &JitExecution::address);
  return taken;
}

// Parents come before their children.
NameList JitNames::read(CodeReader& reader, std::uint64_t tsc) {
  const std::lock_guard lock(mutex_);
  NameList found;
  std::map<trace::SpaceId, JitTimeline> timelines;
  for (Image& image : images_) {
    if (!image.ended) look(image, tsc, false);
    const trace::SpaceId space = image.process.space;
    const auto parent = timelines.find(image.process.parent);
    JitTimeline timeline = parent == timelines.end() || names_ >= kMostNames
                               ? JitTimeline(take_executions(space))
                               : parent->second.forked(image.process.tsc, take_executions(space));
    names_ += timeline.size();
    for (Source& source : image.sources) {
      if (source.marks.empty() || source.marks.back().size <= source.skipped) continue;
      read(reader, source, timeline, found);
    }
    if (timeline.size() == 0) continue;
    const auto ranges = timeline.ranges(space);
    found.ranges.insert(found.ranges.end(), ranges.begin(), ranges.end());
    timelines.insert_or_assign(space, std::move(timeline));
  }
  images_.clear();
  if (limited_) warnings_.push_back(warn(WarningCode::JIT_NAMES_LIMIT, kMostNames, kMostFiles));
  return found;
}

void JitNames::read(CodeReader& reader, Source& source, JitTimeline& timeline, NameList& found) {
  const MappedFile file = reopened({Found::FILE, 0, std::move(source.file)});
  if (file.found != Found::FILE) return;
  if (size_of(file.file) > kMostBytes) limited_ = true;
  ParseRequest request;
  request.kind = source.is_dump ? ParseRequest::Kind::JIT_DUMP : ParseRequest::Kind::JIT_MAP;
  request.file_bytes = std::min(size_of(file.file), kMostBytes);
  if (request.file_bytes == 0) return;
  ParsedFile parsed = reader.parse(file, source.path, request);
  // Times of a dump are not used, so a dump without TSC is as good.
  if (parsed.problem && parsed.problem->code != WarningCode::JITDUMP_NO_TSC)
    warnings_.push_back(parsed.problem->at(source.path));
  std::unordered_map<std::uint64_t, std::string> names;  // of a dump, by file offset of the code
  if (source.is_dump) {
    for (const trace::SymbolEntry& one : parsed.symbols) names.emplace(one.file_offset, one.name);
  }
  trace::ImageFile out{source.path, {}, {}, {}};
  const auto number = static_cast<std::int32_t>(found.files.size());
  for (std::size_t i = 0; i < parsed.functions.size(); ++i) {
    const JitFunction& one = parsed.functions[i];
    const auto after = written_after(source, one.file_offset + (source.is_dump ? one.size : 0));
    if (!after) continue;
    if (++names_ > kMostNames) {
      limited_ = true;
      break;
    }
    const std::string& name = source.is_dump ? names[one.file_offset] : parsed.symbols[i].name;
    if (const auto offset = timeline.add({one.address, one.size, name, number, *after}))
      out.symbols.push_back({name, *offset, one.size});
  }
  if (!out.symbols.empty()) found.files.push_back(std::move(out));
}

std::vector<trace::Warning> JitNames::warnings() const {
  const std::lock_guard lock(mutex_);
  return warnings_;
}

}  // namespace ptkit::capture
