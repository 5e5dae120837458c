#include "formats/perf_export/code.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/check_sum.h"
#include "base/hexadecimal.h"
#include "code/image/elf/elf.h"
#include "formats/common/files.h"

namespace ptkit::formats::perf {

namespace {

constexpr std::size_t kBuildIdLetters = 40;

// Returns the size of a region of user code, up to the begin of the kernel's half of the address space.
std::uint64_t size_of(const trace::CodeRegion& region) {
  return std::min<std::uint64_t>(region.size != 0 ? region.size : region.bytes.size(),
                                 kKernelStart - region.address);
}

base::Bytes bytes_of(const trace::CodeRegion& region) {
  const base::Bytes bytes = region.bytes.bytes();
  return bytes.first(std::min<std::size_t>(bytes.size(), size_of(region)));
}

// Returns the build-id if it is valid, since it becomes part of file names.
std::string checked_build_id(const std::string& id) {
  const bool is_hex = id.find_first_not_of("0123456789abcdef") == std::string::npos;
  return is_hex && id.size() % 2 == 0 && id.size() <= kBuildIdLetters ? id : std::string();
}

std::string synthetic_build_id(std::uint64_t sum) {
  std::string id;
  while (id.size() < kBuildIdLetters) {
    for (unsigned shift = 0; shift < 64 && id.size() < kBuildIdLetters; shift += 4)
      id += "0123456789abcdef"[sum >> shift & 15U];
    sum = base::mix(sum, id.size());
  }
  return id;
}

// Makes a build-id for a file that has none: a hash of its bytes.
std::string synthetic_build_id(const CodeFile& file) {
  std::uint64_t sum = base::check_sum(file.contents.bytes());
  for (const auto& [offset, bytes] : file.parts)
    sum = base::mix(base::mix(sum, offset), base::check_sum(bytes));
  return synthetic_build_id(sum);
}

trace::TraceBuffer file_on_disk(const std::string& path) {
  if (!path.starts_with('/') || !is_file(path)) return {};
  auto contents = trace::TraceBuffer::map_file(path);
  return contents.ok() ? std::move(contents.value()) : trace::TraceBuffer{};
}

bool same(base::Bytes a, base::Bytes b) { return std::ranges::equal(a, b); }

// A written file has its own ELF header. Code in the header's range is accepted only if it is an ELF header
// itself.
bool has_room(std::uint64_t offset, base::Bytes bytes) {
  constexpr std::uint64_t kElfHeaderBytes = 64;
  constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 36U;  // of a sparse file
  if (offset >= kMostBytes) return false;
  constexpr std::array<std::uint8_t, 4> kElfMagic{0x7f, 'E', 'L', 'F'};
  return offset >= kElfHeaderBytes ||
         (offset == 0 && bytes.size() >= kElfHeaderBytes && same(bytes.first(kElfMagic.size()), kElfMagic));
}

std::string filter_of(trace::RangeKind kind, std::uint64_t offset, std::uint64_t size) {
  return (kind == trace::RangeKind::FILTER ? "filter " : "tracestop ") + base::hexadecimal(offset) + "/" +
         base::hexadecimal(size);
}

// Returns the time from which a process sees a region that exists since `tsc`.
std::uint64_t begin_in(const ProcessImage& image, std::uint64_t tsc) { return std::max(tsc, image.begin); }

}  // namespace

Code::Code(const trace::TraceBundle& bundle, PerfCode wanted, bool is_32)
    : bundle_(bundle), wanted_(wanted), is_32_(is_32), agrees_(bundle.code.size(), false) {
  files_.resize(bundle.files.size());
  for (std::size_t i = 0; i < files_.size(); ++i) find_file(i);
  compare_with_files();
  name_files();
}

// Takes the bundle's contents, or those of the file at the same path if it is the same file.
void Code::find_file(std::size_t number) {
  const trace::ImageFile& from = bundle_.files[number];
  CodeFile& file = files_[number];
  file.path = from.path;
  file.build_id = checked_build_id(from.build_id);
  file.symbols = from.symbols;
  file.is_32 = is_32_;
  trace::TraceBuffer here = file_on_disk(from.path);
  const std::string id = code::image::elf_build_id(here.bytes());
  const bool is_here =
      here.size() != 0 && (file.build_id.empty() || id == file.build_id) &&
      (from.contents.size() == 0 || !file.build_id.empty() || same(here.bytes(), from.contents.bytes()));
  file.contents = from.contents.size() != 0 ? from.contents : is_here ? here : trace::TraceBuffer{};
  file.is_written = wanted_ == PerfCode::ALL || (wanted_ == PerfCode::NEEDED && !is_here);
}

// A file without a build-id may have been replaced. Its contents are dropped if they differ from recorded
// code.
void Code::compare_with_files() {
  for (const trace::CodeRegion& region : bundle_.code) {
    const trace::ImageFile* const image = bundle_.file(region.file);
    if (image == nullptr || is_kernel(region)) continue;
    CodeFile& file = files_[static_cast<std::size_t>(region.file)];
    const bool own = image->contents.size() != 0;
    if (file.contents.size() == 0 || own || !file.build_id.empty() || agrees(region)) continue;
    file.contents = {};
    file.is_written = wanted_ != PerfCode::NONE;
  }
  for (std::size_t i = 0; i < bundle_.code.size(); ++i) {
    const trace::CodeRegion& region = bundle_.code[i];
    agrees_[i] = region.file >= 0 && !is_kernel(region) && agrees(region);
    if (agrees_[i]) files_[static_cast<std::size_t>(region.file)].is_mapped = true;
  }
}

bool Code::agrees(const trace::CodeRegion& region) {
  if (region.bytes.size() == 0) return true;
  CodeFile& file = files_[static_cast<std::size_t>(region.file)];
  const base::Bytes bytes = bytes_of(region);
  if (file.contents.size() == 0)
    return has_room(region.file_offset, bytes) && add_part(file, region.file_offset, bytes);
  const base::Bytes all = file.contents.bytes();
  return region.file_offset <= all.size() && bytes.size() <= all.size() - region.file_offset &&
         same(all.subspan(region.file_offset, bytes.size()), bytes);
}

// Returns false if the file already has other bytes in this range.
bool Code::add_part(CodeFile& file, std::uint64_t offset, base::Bytes bytes) {
  auto next = file.parts.upper_bound(offset);
  if (next != file.parts.begin() && std::prev(next)->first + std::prev(next)->second.size() > offset) --next;
  const auto first = next;
  const std::uint64_t end = offset + bytes.size();
  for (; next != file.parts.end() && next->first < end; ++next) {
    const std::uint64_t begin = std::max(offset, next->first);
    const std::uint64_t after = std::min<std::uint64_t>(end, next->first + next->second.size());
    if (!same(bytes.subspan(begin - offset, after - begin),
              next->second.subspan(begin - next->first, after - begin)))
      return false;
  }
  std::uint64_t at = offset;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> holes;
  for (auto part = first; part != next; ++part) {
    if (part->first > at) holes.emplace_back(at, part->first);
    at = std::max<std::uint64_t>(at, part->first + part->second.size());
  }
  if (at < end) holes.emplace_back(at, end);
  for (const auto& [begin, after] : holes)
    file.parts.emplace(begin, bytes.subspan(begin - offset, after - begin));
  return true;
}

void Code::name_files() {
  for (CodeFile& file : files_) {
    if (!file.is_mapped) {
      file.is_written = false;
      continue;
    }
    // The kernel's vDSO image is a complete ELF file.
    if (file.path == "[vdso]" && file.contents.size() == 0 && file.parts.contains(0))
      file.contents = trace::TraceBuffer(file.parts.at(0), nullptr);
    file.is_written = file.is_written && (file.contents.size() != 0 || !file.parts.empty());
    if (file.is_written && file.build_id.empty()) file.build_id = synthetic_build_id(file);
    const std::string path = file.path.empty() ? "file" : file.path;
    file.path = path;
    for (unsigned count = 2; !used_paths_.insert(file.path).second; ++count)
      file.path = path + " (" + std::to_string(count) + ")";
  }
}

std::vector<std::uint8_t> build_id_table(const std::vector<CodeFile>& files) {
  constexpr std::uint16_t kHasSize = 1U << 15U;  // PERF_RECORD_MISC_BUILD_ID_SIZE
  constexpr std::uint32_t kHost = ~std::uint32_t{0};
  constexpr std::size_t kIdBytes = 20;
  std::vector<std::uint8_t> table;
  for (const CodeFile& file : files) {
    std::vector<std::uint8_t> id = bytes_of_hex(file.build_id);
    if (!file.is_mapped || id.empty()) continue;
    const auto size = static_cast<std::uint32_t>(id.size());
    id.resize(kIdBytes);
    RecordBytes record(HEADER_BUILD_ID, kCpuModeUser | kHasSize);
    record.add(kHost);
    for (const std::uint8_t byte : id) record.add(byte);
    record.add(size).text(file.path);  // one byte, and three of padding
    const base::Bytes bytes = record.bytes();
    table.insert(table.end(), bytes.begin(), bytes.end());
  }
  return table;
}

// ---- mappings

Code::Regions Code::user_regions() const {
  Regions regions;
  for (std::size_t i = 0; i < bundle_.code.size(); ++i) {
    const trace::CodeRegion& region = bundle_.code[i];
    if (!is_kernel(region) && size_of(region) != 0) regions[region.space].push_back(i);
  }
  return regions;
}

// Returns the code of the image's space and of all spaces. Shared chunks replace the regions that they hold.
std::vector<Code::Item> Code::items_of(const ProcessImage& image, const Regions& regions) const {
  std::vector<Item> items;
  const bool has_shared = !shared_.versions.empty() && shares(image, regions);
  for (const trace::SpaceId space : std::set<trace::SpaceId>{image.space, trace::kAnySpace}) {
    const auto found = regions.find(space);
    if (found == regions.end()) continue;
    for (const std::size_t i : found->second) {
      if (has_shared && space == trace::kAnySpace && !agrees_[i]) continue;
      const trace::CodeRegion& region = bundle_.code[i];
      const std::uint64_t tsc = begin_in(image, region.tsc_from);
      if (region.tsc_to <= tsc || image.end <= tsc) continue;
      items.push_back({tsc, (region.bytes.size() != 0 ? 2U : 0U) + (space == image.space ? 1U : 0U), i});
    }
  }
  if (has_shared) {
    for (const Shared::Version& version : shared_.versions) {
      const std::uint64_t tsc = begin_in(image, version.tsc);
      if (tsc < image.end) items.push_back({tsc, 2, 0, &version.chunk});
    }
  }
  std::ranges::stable_sort(
      items, [](const Item& a, const Item& b) { return a.tsc != b.tsc ? a.tsc < b.tsc : a.rank < b.rank; });
  return items;
}

void Code::write(const std::vector<ProcessImage>& images, Records& records) {
  const Regions regions = user_regions();
  share(images, regions);
  for (const ProcessImage& image : images) write_process(image, items_of(image, regions), records);
  const bool has_records = std::ranges::any_of(bundle_.streams, [](const trace::Stream& stream) {
    return stream.kind == trace::StreamKind::BRANCH_RECORDS;
  });
  if (has_records) name_code();
}

// With BTS data perf does not load code from a file without symbols on first use. Such a file gets one
// symbol.
void Code::name_code() {
  for (CodeFile& file : files_) {
    if (!file.is_written || file.contents.size() != 0 || !file.symbols.empty()) continue;
    const bool is_jit = !file.jit.empty();
    const std::uint64_t begin = is_jit ? JitElf::kFirstOffset : file.parts.begin()->first;
    const auto end =
        is_jit ? begin + file.jit.size() : file.parts.rbegin()->first + file.parts.rbegin()->second.size();
    file.symbols.push_back({file.path.substr(file.path.rfind('/') + 1), begin, end - begin});
  }
}

// ---- shared code

bool Code::Shared::touches(std::uint64_t begin, std::uint64_t end) const {
  const auto next = ranges.lower_bound(end);
  return next != ranges.begin() && std::prev(next)->second > begin;
}

// Returns an empty result if files of all spaces are mapped over this code: their order in time matters then.
Code::Shared Code::find_shared(const Regions& regions) const {
  Shared out;
  const auto all = regions.find(trace::kAnySpace);
  if (all == regions.end()) return out;
  for (const std::size_t i : all->second) {
    const trace::CodeRegion& region = bundle_.code[i];
    if (agrees_[i]) continue;
    std::uint64_t& end = out.ranges[region.address];
    end = std::max(end, region.address + size_of(region));
    if (region.tsc_from == trace::kTscMin) out.until = std::min(out.until, region.tsc_to);
  }
  std::uint64_t furthest = 0;
  for (auto& [begin, end] : out.ranges) end = furthest = std::max(furthest, end);
  const auto is_over_it = [&](std::size_t i) {
    const trace::CodeRegion& region = bundle_.code[i];
    return agrees_[i] && out.touches(region.address, region.address + size_of(region));
  };
  return std::ranges::any_of(all->second, is_over_it) ? Shared() : out;
}

// Returns false if the process maps anything else there, or has code without a file next to it: perf reads an
// instruction from one file.
bool Code::shares(const ProcessImage& image, const Regions& regions) const {
  constexpr std::uint64_t kApart = 4096;
  if (shared_.ranges.empty() || image.begin >= shared_.until) return false;
  const auto own = regions.find(image.space);
  if (image.space == trace::kAnySpace || own == regions.end()) return true;
  return std::ranges::none_of(own->second, [&](std::size_t i) {
    const trace::CodeRegion& region = bundle_.code[i];
    const std::uint64_t apart = agrees_[i] ? 0 : kApart;
    const std::uint64_t begin = region.address - std::min(region.address, apart);
    return shared_.touches(begin, region.address + size_of(region) + apart);
  });
}

void Code::share(const std::vector<ProcessImage>& images, const Regions& regions) {
  shared_ = find_shared(regions);
  if (std::ranges::count_if(images, [&](const auto& image) { return shares(image, regions); }) < 2) return;
  std::vector<Item> items = items_of({}, regions);
  std::erase_if(items, [this](const Item& item) { return agrees_[item.region]; });
  shared_.file = files_.size();
  add_jit_file("all", items);
  JitElf jit;
  std::vector<Shared::Version> versions;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const trace::CodeRegion& region = bundle_.code[items[i].region];
    jit.put(region.address, bytes_of(region));
    if (i + 1 != items.size() && items[i + 1].tsc == items[i].tsc) continue;
    for (const JitElf::Chunk& chunk : jit.take_changes()) versions.push_back({items[i].tsc, chunk});
  }
  finish_jit_file(shared_.file, jit);
  shared_.versions = std::move(versions);
}

// ---- code of one process

void Code::add_jit_file(const std::string& owner, const std::vector<Item>& items) {
  std::uint64_t sum = 0;
  for (const Item& item : items) {
    if (item.chunk != nullptr || agrees_[item.region]) continue;
    const trace::CodeRegion& region = bundle_.code[item.region];
    sum = base::mix(base::mix(sum, region.address ^ item.tsc), base::check_sum(region.bytes.bytes()));
  }
  CodeFile file;
  for (unsigned count = 1; file.path.empty() || !used_paths_.insert(file.path).second; ++count)
    file.path = "code-" + owner + "-" + std::to_string(count);
  file.build_id = synthetic_build_id(sum);
  file.is_32 = is_32_;
  files_.push_back(std::move(file));
}

void Code::finish_jit_file(std::size_t number, JitElf& jit) {
  CodeFile& file = files_[number];
  file.is_mapped = !jit.empty();
  file.is_written = file.is_mapped && wanted_ != PerfCode::NONE;
  file.jit = jit.release();
}

void Code::write_process(const ProcessImage& image, const std::vector<Item>& items, Records& records) {
  Process process{image, files_.size()};
  add_jit_file(std::to_string(image.pid), items);
  for (std::size_t i = 0; i < items.size(); ++i) {
    put(process, items[i], records);
    if (i + 1 == items.size() || items[i + 1].tsc != items[i].tsc) map_jit(process, items[i].tsc, records);
  }
  finish_jit_file(process.jit_file, process.jit);
}

void Code::put(Process& process, const Item& item, Records& records) {
  if (const JitElf::Chunk* const chunk = item.chunk) {
    static_cast<void>(
        map(process, item.tsc, {chunk->address, chunk->size, chunk->offset, shared_.file}, records));
    return;
  }
  const trace::CodeRegion& region = bundle_.code[item.region];
  if (!agrees_[item.region]) return process.jit.put(region.address, bytes_of(region));
  const FileRange span{region.address, size_of(region), region.file_offset,
                       static_cast<std::size_t>(region.file)};
  if (!map(process, item.tsc, span, records)) return;
  // Saved bytes take precedence over a mapping without bytes.
  const std::uint64_t end = span.address + span.size;
  if (region.bytes.size() != 0)
    process.jit.forget(span.address, end);
  else
    process.jit.remap(span.address, end);
}

void Code::map_jit(Process& process, std::uint64_t tsc, Records& records) {
  for (const JitElf::Chunk& chunk : process.jit.take_changes())
    static_cast<void>(
        map(process, tsc, {chunk.address, chunk.size, chunk.offset, process.jit_file}, records));
}

// False: a record of this mapping was already written.
bool Code::map(Process& process, std::uint64_t tsc, const FileRange& span, Records& records) {
  const std::uint64_t last = span.address + (span.size - 1);
  const Mapped mapped{span.file, span.address - span.offset};
  const auto there = process.mappings.find(span.address);
  if (there != process.mappings.end() && there->second.last >= last && there->second.value == mapped)
    return false;
  process.mappings.assign(span.address, last, mapped);
  note_filters(process.image.space, span);
  const CodeFile& file = files_[span.file];
  const std::int64_t pid = process.image.pid;
  records.map({pid, pid, trace::kNoId, tsc},
              {span.address, span.size, span.offset, file.path, file.build_id});
  return true;
}

// ---- address ranges

// perf compares branch targets with filters by file and offset.
void Code::note_filters(trace::SpaceId space, const FileRange& span) {
  const std::string& path = files_[span.file].path;
  const auto note = [&](const trace::AddressRange& range) {
    const std::uint64_t first = std::max(range.first, span.address);
    const std::uint64_t last = std::min(range.last, span.address + (span.size - 1));
    if (range.kind == trace::RangeKind::OFF || first > last) return;
    // These characters end a file name in perf's filter syntax.
    if (path.find_first_of(" ,\t\n") != std::string::npos) is_filter_whole_ = false;
    filters_.insert(filter_of(range.kind, span.offset + (first - span.address), last - first + 1) + "@" +
                    path);
  };
  for (const trace::AddressRange& range : bundle_.configuration.ranges) note(range);
  for (const trace::SpaceRange& one : bundle_.configuration.space_ranges) {
    if (one.space == space || one.space == trace::kAnySpace) note(one.range);
  }
}

bool has_ranges(const trace::Configuration& configuration) {
  const auto is_used = [](const trace::AddressRange& range) { return range.kind != trace::RangeKind::OFF; };
  return !configuration.space_ranges.empty() || std::ranges::any_of(configuration.ranges, is_used);
}

std::optional<std::string> Code::filter() const {
  constexpr std::size_t kMostBytes = 4000;  // limit of a text in a record
  std::string all;
  const auto add = [&all](const std::string& one) { all += (all.empty() ? "" : ",") + one; };
  for (const trace::AddressRange& range : bundle_.configuration.ranges) {
    if (range.kind == trace::RangeKind::OFF || range.last < kKernelStart) continue;
    const std::uint64_t first = std::max(range.first, kKernelStart);
    add(filter_of(range.kind, first, range.last - first + 1));
  }
  for (const std::string& one : filters_) {
    if (all.size() > kMostBytes) break;
    add(one);
  }
  if (!is_filter_whole_ || all.size() > kMostBytes) return std::nullopt;
  const bool no_filter = bundle_.configuration.ranges_known && !has_ranges(bundle_.configuration);
  return all.empty() && !no_filter ? std::nullopt : std::optional(all);
}

}  // namespace ptkit::formats::perf
