#include "formats/perf_data/processes.h"

#include <algorithm>
#include <iterator>

#include "base/addresses.h"
#include "base/hexadecimal.h"
#include "formats/common/first_names.h"
#include "trace/warning_codes.h"

namespace ptkit::formats::perf {

using trace::WarningCode;

namespace {

// Limits of mappings that fork() copies: a small file could demand any number.
constexpr std::size_t kAlwaysInherited = 250'000;
constexpr std::size_t kMostInherited = 4'000'000;
constexpr std::uint64_t kFileBytesOfOne = 64;

}  // namespace

Processes::Processes(trace::TraceBundle& bundle, Binaries& binaries, bool is_here, std::uint64_t file_bytes)
    : bundle_(bundle),
      binaries_(binaries),
      is_here_(is_here),
      may_inherit_(static_cast<std::size_t>(
          std::min<std::uint64_t>(kMostInherited, kAlwaysInherited + file_bytes / kFileBytesOfOne))),
      may_inherit_texts_(may_inherit_) {}

trace::SpaceId Processes::space_of(std::int64_t pid) {
  if (pid < 0) return trace::kAnySpace;  // kernel code is mapped in every space
  const auto [found, added] = spaces_.try_emplace(pid, static_cast<trace::SpaceId>(bundle_.spaces.size()));
  if (added) bundle_.spaces.push_back({.pid = pid});
  return found->second;
}

void Processes::expect(const Event& event) {
  if (event.type != MMAP && event.type != MMAP2) return;
  binaries_.expect(mapping_of(event));
  if (event.tsc == trace::kTscMin && !perf::is_memory(event.text))
    untimed_files_[event.pid].push_back(&event);
}

void Processes::apply(const Event& event) {
  switch (event.type) {
    case MMAP:
    case MMAP2:
      return map(event);
    case JIT_LOAD:
      return load_jit(event);
    case COMM:
      names_[{event.pid, event.tid}] = event.text;
      if (event.exec) return exec(event);
      return add_sideband(trace::SidebandKind::THREAD, event);
    case FORK:
      return fork(event);
    case EXIT:
      add_sideband(trace::SidebandKind::EXIT, event);
      return;
    default:
      return;
  }
}

void Processes::add_sideband(trace::SidebandKind kind, const Event& event) {
  trace::Sideband record;
  record.kind = kind;
  record.tsc = event.tsc;
  record.pid = event.pid;
  record.tid = event.tid;
  record.parent = event.parent_pid;
  record.value = kind == trace::SidebandKind::EXIT ? -1 : 0;
  record.text = event.text;
  bundle_.sideband.push_back(std::move(record));
}

void Processes::load_jit(const Event& event) {
  trace::CodeRegion region;
  region.space = space_of(event.pid);
  region.address = event.address;
  region.bytes = event.bytes;
  region.size = event.size;
  region.tsc_from = event.tsc;
  region.file = event.file;
  region.file_offset = event.file_offset;
  has_jitdump_.insert(region.space);
  mapped_[region.space].push_back(bundle_.code.size());
  bundle_.code.push_back(std::move(region));
}

void Processes::map(const Event& event) {
  trace::CodeRegion region;
  region.space = space_of(event.pid);
  // A JIT compiler calls mprotect() on its memory many times. The JIT code from the jitdump stays valid.
  const bool is_memory = perf::is_memory(event.text);
  region.address = event.address;
  region.size = event.size;
  region.tsc_from = event.tsc;
  if (is_memory && has_jitdump_.count(region.space) != 0) return;
  const bool is_copy = is_memory && binaries_.build_id_of(mapping_of(event)).empty();
  const std::int32_t map = is_memory ? binaries_.find_map(event.pid, is_here_) : -1;
  const bool is_text = is_copy && take_text(region, event.pid, map);
  if (!is_text) {
    region.file_offset = event.file_offset;
    region.file = map;
    if (region.file >= 0) {
      region.file_offset = event.address;
    } else {
      region.file = binaries_.find(mapping_of(event));
    }
  }
  binaries_.map_contents(region);
  if (!is_memory) note_text(region, mapping_of(event));
  if (event.pid >= 0) {
    add_sideband(trace::SidebandKind::MAP, event);
    bundle_.sideband.back().address = event.address;
    bundle_.sideband.back().size = event.size;
    bundle_.sideband.back().file = region.file;
    bundle_.sideband.back().file_offset = event.file_offset;
    mapped_[region.space].push_back(bundle_.code.size());
    if (!is_memory) check_untimed_overlap(region);
  }
  bundle_.code.push_back(std::move(region));
}

// Returns true if a perf-PID.map (-1: none) has names of code in the region.
bool Processes::names_jit_code(std::int32_t map, const trace::CodeRegion& region) const {
  if (map < 0) return false;
  const auto& names = bundle_.files[static_cast<std::size_t>(map)].symbols;
  return std::ranges::any_of(names, [&](const trace::SymbolEntry& one) {
    return one.file_offset >= region.address && one.file_offset - region.address < region.size;
  });
}

// A file's program header says where its code lies, also of parts that are not mapped any more.
void Processes::note_text(const trace::CodeRegion& region, const Mapping& mapping) {
  const auto [found, added] = segments_.try_emplace(region.file);
  if (added)
    found->second =
        code::image::file_segments(bundle_.files[static_cast<std::size_t>(region.file)].contents.bytes());
  constexpr std::size_t kMostSegments = 128;  // a file could demand any number
  if (found->second.size() > kMostSegments) found->second.clear();
  base::IntervalMap<Text>& texts = texts_[region.space];
  if (region.size == 0) return;
  texts.assign(region.address, region.address + (region.size - 1), {});
  const auto rva = code::image::rva_of(found->second, region, region.file_offset);
  if (!rva) return;
  const std::uint64_t load = region.address - *rva;
  for (const code::image::FileSegment& segment : found->second) {
    const std::uint64_t begin = load + segment.rva;
    const std::uint64_t last = (begin + (segment.size - 1)) | base::kOffsetInPage;
    if (!segment.executable || last < begin) continue;
    const AddressSpan text =
        text_around(region, mapping, {begin & ~base::kOffsetInPage, last}, begin - segment.file_offset);
    if (text.first <= text.last)
      texts.assign(text.first, text.last, {region.file, begin - segment.file_offset});
  }
}

// The part of a segment that was mapped where the region is. Of a file that is mapped in parts, it is the
// region, and the part that anonymous code beside the parts may have replaced: but a program that has the
// file whole elsewhere may have mapped a part once more, beside JIT code. `delta`: from offset in the file to
// address.
Processes::AddressSpan Processes::text_around(const trace::CodeRegion& region, const Mapping& mapping,
                                              const AddressSpan& segment, std::uint64_t delta) const {
  const auto begins = [&](const code::image::FileMapping& part) {
    return part.offset + delta <= segment.first;
  };
  const auto ends = [&](const code::image::FileMapping& part) {
    return part.offset + delta + (part.size - 1) >= segment.last;
  };
  const auto is_of = [&](const code::image::FileMapping& part) {
    const std::uint64_t first = part.offset + delta;
    return part.size != 0 && first <= segment.last && first + (part.size - 1) >= segment.first;
  };
  std::vector<code::image::FileMapping> parts = binaries_.parts_of(mapping);
  std::erase_if(parts, [&](const auto& part) { return !is_of(part); });
  const AddressSpan inside{std::max(segment.first, region.address),
                           std::min(segment.last, region.address + (region.size - 1))};
  if (delta != region.address - region.file_offset) return {1, 0};
  if (parts.empty()) return inside;
  const auto is_whole = [&](const std::vector<code::image::FileMapping>& all) {
    return std::ranges::any_of(all, begins) && std::ranges::any_of(all, ends);
  };
  if (is_whole(parts)) return segment;
  if (std::ranges::any_of(binaries_.other_parts_of(mapping), is_whole)) return inside;
  const auto last =
      std::ranges::max_element(parts, {}, [](const auto& one) { return one.offset + one.size; });
  return {begins(parts.front()) || parts.front().is_preceded ? segment.first : inside.first,
          ends(*last) || last->is_followed ? segment.last : inside.last};
}

// Mappings from before the recording are in the order of addresses, not of time.
void Processes::note_untimed_text(std::int64_t pid) {
  const auto found = untimed_files_.find(pid);
  if (found == untimed_files_.end()) return;
  for (const Event* const event : found->second) {
    trace::CodeRegion region;
    region.space = space_of(pid);
    region.address = event->address;
    region.size = event->size;
    region.file_offset = event->file_offset;
    region.file = binaries_.find(mapping_of(*event));
    note_text(region, mapping_of(*event));
  }
  untimed_files_.erase(found);
}

// Programs copy their code to large pages, and map these over the file.
bool Processes::take_text(trace::CodeRegion& region, std::int64_t pid, std::int32_t map) {
  if (region.tsc_from == trace::kTscMin) note_untimed_text(pid);
  const auto texts = texts_.find(region.space);
  if (texts == texts_.end() || region.size == 0) return false;
  const auto text = texts->second.find(region.address);
  if (text == texts->second.end() || text->second.value.file < 0) return false;
  if (region.size - 1 > text->second.last - region.address) return false;
  if (names_jit_code(map, region)) return false;
  region.file = text->second.value.file;
  region.file_offset = region.address - text->second.value.delta;
  moved_.insert("[" + base::hexadecimal(region.address) + ", " +
                base::hexadecimal(region.address + region.size) + ") of " +
                bundle_.files[static_cast<std::size_t>(region.file)].path);
  return true;
}

void Processes::warn_of_moved_code() {
  if (moved_.empty()) return;
  FirstNames names(", ");
  for (const std::string& one : moved_) names.add(one);
  bundle_.warnings.push_back(warn(WarningCode::CODE_MOVED, moved_.size(), names.text()));
}

// Without times the order of two mappings of the same addresses is unknown. The later record is used.
void Processes::check_untimed_overlap(const trace::CodeRegion& region) {
  if (is_ambiguous_ || region.tsc_from != trace::kTscMin) return;
  const Untimed one{region.address + region.size, region.file, region.address - region.file_offset};
  const auto differs = [&](const Untimed& other) {
    return other.file != one.file || other.begin_in_file != one.begin_in_file;
  };
  const auto next = untimed_.upper_bound({region.space, region.address});
  if (next != untimed_.end() && next->first.first == region.space && next->first.second < one.end)
    is_ambiguous_ = differs(next->second);
  if (next != untimed_.begin()) {
    const auto& [key, before] = *std::prev(next);
    is_ambiguous_ =
        is_ambiguous_ || (key.first == region.space && before.end > region.address && differs(before));
  }
  untimed_.insert_or_assign({region.space, region.address}, one);
}

void Processes::fork(const Event& event) {
  add_sideband(event.pid == event.parent_pid ? trace::SidebandKind::THREAD : trace::SidebandKind::PROCESS,
               event);
  if (event.pid == event.parent_pid) return;
  const trace::SpaceId parent = space_of(event.parent_pid);
  spaces_.erase(event.pid);  // the process that had this PID before has ended
  const trace::SpaceId child = space_of(event.pid);
  if (event.exec) return;
  inherit(parent, child, event.tsc);
}

void Processes::inherit(trace::SpaceId parent, trace::SpaceId child, std::uint64_t tsc) {
  if (!inherits_all_) return;
  drop_covered(parent, tsc);
  const std::vector<std::size_t>& all = mapped_[parent];
  inherits_all_ = all.size() <= may_inherit_;
  if (!inherits_all_) return;
  may_inherit_ -= all.size();
  if (has_jitdump_.count(parent) != 0) has_jitdump_.insert(child);
  inherit_texts(parent, child);
  std::vector<std::size_t>& mapped = mapped_[child];
  for (const std::size_t number : all) {
    trace::CodeRegion region = bundle_.code[number];
    region.space = child;
    region.tsc_from = tsc;
    check_untimed_overlap(region);
    mapped.push_back(bundle_.code.size());
    bundle_.code.push_back(std::move(region));
  }
}

void Processes::inherit_texts(trace::SpaceId parent, trace::SpaceId child) {
  const auto texts = texts_.find(parent);
  if (texts == texts_.end() || !inherits_texts_) return;
  const auto count = static_cast<std::size_t>(std::distance(texts->second.begin(), texts->second.end()));
  inherits_texts_ = count <= may_inherit_texts_;
  if (!inherits_texts_) return;
  may_inherit_texts_ -= count;
  texts_[child] = texts->second;
}

// Ends mappings that later ones cover completely. A child does not inherit these.
void Processes::drop_covered(trace::SpaceId space, std::uint64_t tsc) {
  std::vector<std::size_t>& mapped = mapped_[space];
  base::IntervalMap<bool> covered;  // by newer mappings
  std::vector<std::size_t> kept;
  for (std::size_t i = mapped.size(); i-- > 0;) {
    trace::CodeRegion& region = bundle_.code[mapped[i]];
    if (region.size != 0 && covered.covers(region.address, covered.last_of(region.address, region.size))) {
      region.tsc_to = tsc;
    } else {
      kept.push_back(mapped[i]);
    }
    covered.assign_size(region.address, region.size, true);  // one entry for those in the range
  }
  std::ranges::reverse(kept);
  mapped = std::move(kept);
}

void Processes::exec(const Event& event) {
  add_sideband(trace::SidebandKind::EXEC, event);
  if (event.tsc == trace::kTscMin) return;  // no time: mappings before exec() stay
  auto& mapped = mapped_[space_of(event.pid)];
  for (const std::size_t number : mapped) bundle_.code[number].tsc_to = event.tsc;
  mapped.clear();
  has_jitdump_.erase(space_of(event.pid));
  texts_.erase(space_of(event.pid));
}

void Processes::finish() {
  if (is_ambiguous_ && bundle_.configuration.clock.perf_time_known)
    bundle_.warnings.push_back(warn(WarningCode::NO_TIMESTAMPS));
  warn_of_moved_code();
  if (!inherits_all_ || !inherits_texts_)
    bundle_.warnings.push_back(warn(WarningCode::MAPPINGS_INHERITED_LIMIT));
  for (const auto& [thread, name] : names_) bundle_.threads.push_back({thread.first, thread.second, name});
}

}  // namespace ptkit::formats::perf
