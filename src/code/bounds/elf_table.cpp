// Functions of ELF files: .eh_frame, .gcc_except_table and PLT stubs.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

#include "code/bounds/cursor.h"
#include "code/bounds/eh_frame.h"
#include "code/bounds/file_segments.h"
#include "code/bounds/table_builder.h"
#include "code/image/elf/elf_file.h"
#include "code/image/files/segments.h"
#include "code/image/pe/pe.h"
#include "code/image/pe/pe_file.h"

namespace ptkit::code::bounds {
namespace {

using code::image::ElfFile;

// Instructions from which an exception goes on at a landing pad. Link addresses.
struct CallSite {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t pad = 0;
};

// Reads call-site tables of .gcc_except_table (language-specific data areas, LSDA). C++ and Rust use the same
// form: Itanium C++ ABI, "Exception Handling Tables".
class CallSiteReader {
 public:
  CallSiteReader(const code::image::ElfFile& file, const FileSegments& segments)
      : file_(file), segments_(segments), left_(file.bytes().size()) {}

  // The call sites of a function that have a landing pad.
  [[nodiscard]] std::vector<CallSite> read(const FrameEntry& frame);

 private:
  const code::image::ElfFile& file_;
  const FileSegments& segments_;
  // Bytes of tables to read yet. In real files each function has a table of its own, so all together have
  // fewer bytes than the file. In hostile ones all functions may refer to one large table.
  std::uint64_t left_;
};

std::vector<CallSite> CallSiteReader::read(const FrameEntry& frame) {
  std::vector<CallSite> found;
  const auto span = frame.call_sites != 0 ? segments_.find(frame.call_sites) : std::nullopt;
  if (!span) return found;
  const base::Bytes bytes = file_.bytes().subspan(static_cast<std::size_t>(span->offset),
                                                  static_cast<std::size_t>(std::min(span->left, left_)));
  Cursor from(bytes, frame.call_sites, file_.header().e_ident[EI_CLASS] == ELFCLASS64);
  // Landing pads count from the function's begin, unless the table has another base.
  const std::uint8_t base_encoding = from.byte();
  const std::uint64_t base =
      base_encoding == kOmitted ? frame.begin : from.pointer(base_encoding).value_or(0);
  if (from.byte() != kOmitted) from.uleb();  // where the table of types ends
  const std::uint8_t encoding = from.byte();
  const std::uint64_t size = from.uleb();
  Cursor sites = from.part(size);
  left_ -= from.good() ? from.at() : 0;
  while (sites.good() && sites.left() != 0) {
    const std::uint64_t begin = sites.value(encoding);
    const std::uint64_t length = sites.value(encoding);
    const std::uint64_t pad = sites.value(encoding);
    sites.uleb();  // action: what the landing pad catches
    const bool is_inside = begin < frame.size && length <= frame.size - begin;
    if (!sites.good() || !is_inside) break;
    if (pad == 0 || length == 0) continue;
    found.push_back({frame.begin + begin, frame.begin + begin + length, base + pad});
  }
  return found;
}

// A PLT has one frame entry for all of its stubs.
void add_stubs(const ElfFile& file, const FileSegments& segments, TableBuilder& out) {
  for (const ElfFile::Section& section : file.sections()) {
    const std::uint64_t step = ElfFile::stub_bytes(section);
    const std::uint64_t size = step == 0 ? 0 : file.contents(section).size();
    const auto at = size == 0 ? std::nullopt : segments.find(section.header.sh_addr);
    if (at && at->executable && size <= at->left) out.add_stubs(at->offset, size, step);
  }
}

UnwindTable elf_table(const ElfFile& file) {
  TableBuilder out(file.bytes().size());
  for (const code::image::FileSegment& one : code::image::file_segments(file.bytes())) {
    if (one.executable) out.add_segment(one.file_offset, one.size, one.rva);
  }
  const FileSegments segments(file);
  add_stubs(file, segments, out);
  CallSiteReader sites(file, segments);
  for (const FrameEntry& frame : read_frame_entries(file)) {
    const auto at = segments.find(frame.begin);
    if (!at || !at->executable || frame.size > at->left) continue;
    if (!out.add_function(at->offset, frame.size, frame.is_part)) continue;
    for (const CallSite& site : sites.read(frame)) {
      const auto pad = segments.find(site.pad);
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
