#include "capture/windows/images.h"

#include <algorithm>
#include <utility>

#include "base/ascii.h"
#include "code/bounds/table.h"
#include "code/image/files/imports.h"
#include "code/image/pe/pe.h"
#include "code/image/pe/pe_file.h"

namespace ptkit::capture {

namespace {

constexpr std::uint64_t kMostCodeBytes = std::uint64_t{4} << 30U;   // of all images
constexpr std::uint64_t kMostImageBytes = std::uint64_t{1} << 30U;  // of one, from memory
constexpr std::uint64_t kPageBytes = 4096;
constexpr std::uint64_t kKernelAddresses = std::uint64_t{1} << 63U;

// Windows ignores case. Another size is another file of the name.
std::string key_of(const WindowsRecord& record) {
  return std::to_string(record.bytes) + ' ' + base::ascii_lower(record.path);
}

std::uint64_t pages(std::uint64_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes; }

std::vector<trace::CodeRegion> executable_parts(const code::image::PeFile& file, std::int32_t number) {
  std::vector<trace::CodeRegion> parts;
  for (const code::image::PeFile::Section& section : file.sections()) {
    if (!section.executable || section.file_size == 0) continue;
    trace::CodeRegion& part = parts.emplace_back();
    part.address = section.address;
    part.size = section.file_size;
    part.file = number;
    part.file_offset = section.offset;
    part.shared = true;
  }
  return parts;
}

}  // namespace

trace::TraceBuffer WindowsImages::relocated(const CodeFile& file, const trace::TraceBuffer& part,
                                            std::uint32_t rva, std::uint64_t base) {
  std::vector<std::uint8_t> bytes(part.bytes().begin(), part.bytes().end());
  file.relocations->apply(base - file.linked_base, rva, bytes);
  return trace::TraceBuffer::from_vector(std::move(bytes));
}

void WindowsImages::apply(const WindowsRecord& record) {
  using Kind = WindowsRecord::Kind;
  switch (record.kind) {
    case Kind::BEGIN:
      return begin(record);
    case Kind::SPACE:
      if (follows(record.pid)) describe(space_of(record.pid), record);
      return;
    case Kind::END:
      return end(record);
    case Kind::IMAGE:
      if (record.kernel ? kernel_ : follows(record.pid)) image(record);
      return;
    case Kind::LOST:
      return;  // ptkit_status counts them
  }
}

trace::SpaceId WindowsImages::space_of(std::int64_t pid) {
  Process& process = processes_[pid];
  if (process.space == trace::kAnySpace) {
    process.space = ++last_space_;
    trace::Space space;
    space.pid = pid;
    writer_->space(process.space, space);
  }
  return process.space;
}

void WindowsImages::describe(trace::SpaceId id, const WindowsRecord& record) {
  if (record.kernel_cr3 == 0) return;
  trace::Space space;
  space.pid = record.pid;
  space.cr3 = record.kernel_cr3;
  space.cr3_known = true;
  if (record.user_cr3 != record.kernel_cr3) space.user_cr3 = record.user_cr3;
  writer_->space(id, space);
}

// Windows uses numbers of processes again: a process that begins has a space of its own. What is traced by
// number was there before.
void WindowsImages::begin(const WindowsRecord& record) {
  if (!follows(record.pid)) return;
  trace::Sideband out;
  out.tsc = record.tsc;
  out.pid = record.pid;
  if (record.tid == 0) {
    const auto known = processes_.find(record.pid);
    if (pid_ == 0 && known != processes_.end() && known->second.has_program) processes_.erase(known);
    describe(space_of(record.pid), record);
    out.kind = trace::SidebandKind::PROCESS;
    out.parent = record.parent_pid;
  } else {
    out.kind = trace::SidebandKind::THREAD;
    out.tid = record.tid;
  }
  writer_->sideband(out);
}

void WindowsImages::end(const WindowsRecord& record) {
  if (!follows(record.pid)) return;
  trace::Sideband out;
  out.kind = trace::SidebandKind::EXIT;
  out.tsc = record.tsc;
  out.pid = record.pid;
  out.tid = record.tid != 0 ? record.tid : record.pid;
  out.value = record.status;
  writer_->sideband(out);
}

// An image counts from the beginning on, unless another one was at its addresses before: its notification may
// come late.
std::uint64_t WindowsImages::first_time(const WindowsRecord& record, trace::SpaceId space) {
  const Range range{space, record.address, record.address + record.bytes};
  const bool replaces = std::any_of(mapped_.begin(), mapped_.end(), [&](const Range& other) {
    return other.space == space && other.begin < range.end && range.begin < other.end;
  });
  mapped_.push_back(range);
  return replaces && !record.before ? record.tsc : trace::kTscMin;
}

void WindowsImages::unload(const KernelEvent& event) {
  const bool kernel = event.address >= kKernelAddresses;
  if (kernel ? !kernel_ : !follows(event.pid)) return;
  trace::CodeRegion ended;
  ended.space = kernel ? trace::kAnySpace : space_of(event.pid);
  ended.address = event.address;
  ended.size = event.bytes;
  writer_->code_end(ended, event.tsc);
}

WindowsImages::CodeFile& WindowsImages::file_of(const WindowsRecord& record) {
  const auto [entry, fresh] = files_.try_emplace(key_of(record));
  CodeFile& out = entry->second;
  if (!fresh) return out;
  out.number = static_cast<std::int32_t>(files_.size() - 1);
  trace::ImageFile described;
  described.path = source_->shown(record.path);
  const trace::TraceBuffer contents = source_->file(record.path);
  const auto file = code::image::PeFile::open(contents.bytes());
  // Otherwise the file was replaced after it was mapped.
  if (file.ok() && pages(file.value().size()) == pages(record.bytes)) {
    out.is_image = true;
    out.parts = executable_parts(file.value(), out.number);
    out.contents = contents;
    out.linked_base = file.value().linked_base();
    out.relocations = std::make_shared<const code::image::PeRelocations>(file.value());
    described.build_id = file.value().id();
    described.symbols = code::image::pe_symbols(contents.bytes(), true);
    described.unwind = code::bounds::UnwindTable(file.value()).encode();
    described.imports = code::image::Imports(file.value()).encode();
  }
  writer_->file(static_cast<std::uint32_t>(out.number), described);
  return out;
}

void WindowsImages::image(const WindowsRecord& record) {
  if (record.bytes == 0 || record.address + record.bytes < record.address) return;
  const trace::SpaceId space = record.kernel ? trace::kAnySpace : space_of(record.pid);
  CodeFile& file = file_of(record);
  trace::Sideband out;
  out.tsc = record.tsc;
  out.pid = record.kernel ? 0 : record.pid;
  Process* const process = record.kernel ? nullptr : &processes_[record.pid];
  if (process != nullptr && !std::exchange(process->has_program, true)) {
    out.kind = trace::SidebandKind::EXEC;  // a process' first image is its program
    out.text = source_->shown(record.path);
    writer_->sideband(out);
    out.text.clear();
  }
  out.kind = trace::SidebandKind::MAP;
  out.address = record.address;
  out.size = record.bytes;
  out.file = file.number;
  writer_->sideband(out);
  write_code(record, file, space);
}

void WindowsImages::write_code(const WindowsRecord& record, CodeFile& file, trace::SpaceId space) {
  const std::uint64_t since = first_time(record, space);
  if (!file.is_image) {
    trace::CodeRegion region;
    region.space = space;
    region.address = record.address;
    region.size = record.bytes;
    region.tsc_from = since;
    region.file = file.number;
    return write_memory(record, std::move(region));
  }
  bool has_moved = false;
  const bool is_written = std::exchange(file.is_written, true);
  if (!is_written) file.written_base = record.address;
  for (const trace::CodeRegion& part : file.parts) {
    trace::CodeRegion region = part;
    region.space = space;
    region.address += record.address;
    region.tsc_from = since;
    const auto rva = static_cast<std::uint32_t>(part.address);
    const bool moved = file.relocations->any_in(rva, part.size);
    has_moved = has_moved || moved;
    // The bundle has the bytes of a base once, for all processes; another base changes relocated ones.
    region.shared = !is_written || !moved || record.address == file.written_base;
    if (!is_written || !region.shared) {
      region.bytes = file.contents.slice(part.file_offset, part.size);
      if (code_bytes_ + region.bytes.size() > kMostCodeBytes) {
        region.bytes = {};
        unread_.push_back(record.path);
      }
      if (moved) region.bytes = relocated(file, region.bytes, rva, record.address);
      code_bytes_ += region.bytes.size();
    }
    writer_->code(region);
  }
  if (!has_moved) file.contents = {};  // a file that is mapped cannot be replaced
}

// The whole image, as its process has it. It has no names then: a name has a file offset.
void WindowsImages::write_memory(const WindowsRecord& record, trace::CodeRegion region) {
  std::vector<std::uint8_t> bytes;
  if (!record.kernel && record.bytes <= kMostImageBytes && code_bytes_ + record.bytes <= kMostCodeBytes)
    bytes = source_->memory(record.pid, record.address, record.bytes);
  if (bytes.empty()) unread_.push_back(record.path);
  code_bytes_ += bytes.size();
  region.bytes = trace::TraceBuffer::from_vector(std::move(bytes));
  writer_->code(region);
}

}  // namespace ptkit::capture
