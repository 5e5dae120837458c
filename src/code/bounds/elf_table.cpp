// Functions of ELF files: .eh_frame, .gcc_except_table and PLT stubs.
#include <optional>

#include "code/bounds/call_sites.h"
#include "code/bounds/eh_frame.h"
#include "code/bounds/places.h"
#include "code/bounds/table_builder.h"
#include "code/image/elf/elf_file.h"
#include "code/image/files/segments.h"
#include "code/image/pe/pe.h"
#include "code/image/pe/pe_file.h"

namespace ptkit::code::bounds {
namespace {

using code::image::ElfFile;

// A PLT has one frame entry for all of its stubs.
void add_stubs(const ElfFile& file, const Places& places, TableBuilder& out) {
  for (const ElfFile::Section& section : file.sections()) {
    const std::uint64_t step = ElfFile::stub_bytes(section);
    const std::uint64_t size = step == 0 ? 0 : file.contents(section).size();
    const auto at = size == 0 ? std::nullopt : places.find(section.header.sh_addr);
    if (at && at->executable && size <= at->left) out.add_stubs(at->offset, size, step);
  }
}

UnwindTable elf_table(const ElfFile& file) {
  TableBuilder out(file.bytes().size());
  for (const code::image::FileSegment& one : code::image::file_segments(file.bytes())) {
    if (one.executable) out.add_segment(one.file_offset, one.size, one.rva);
  }
  const Places places(file);
  add_stubs(file, places, out);
  CallSiteReader sites(file, places);
  for (const FrameEntry& frame : read_frame_entries(file)) {
    const auto at = places.find(frame.begin);
    if (!at || !at->executable || frame.size > at->left) continue;
    if (!out.add_function(at->offset, frame.size, frame.is_part)) continue;
    for (const CallSite& site : sites.read(frame)) {
      const auto pad = places.find(site.pad);
      if (!pad || !pad->executable) continue;
      const std::uint64_t begin = at->offset + (site.begin - frame.begin);
      out.add_call_site(begin, begin + (site.end - site.begin), pad->offset);
    }
  }
  return out.finish();
}

}  // namespace

UnwindTable::UnwindTable(base::Bytes bytes) {
  if (code::image::is_pe(bytes)) {
    const auto file = code::image::PeFile::open(bytes);
    if (file.ok()) *this = UnwindTable(file.value());
    return;
  }
  const auto file = ElfFile::open(bytes);
  if (file.ok()) *this = elf_table(file.value());
}

UnwindTable UnwindTable::of(const trace::ImageFile& file) {
  if (file.contents.size() != 0) return UnwindTable(file.contents.bytes());
  return decode(file.unwind, kMostFileBytes).value_or(UnwindTable());
}

}  // namespace ptkit::code::bounds
