#include "code/source/pdb/module_files.h"

#include <algorithm>

namespace ptkit::code::pdb {

// signature, version, bytes; then the texts
Paths::Paths(const MsfFile& file, const DebugStreams& streams, code::source::Strings& texts,
             code::source::Budget& memory)
    : texts_(texts), memory_(memory) {
  constexpr std::uint32_t kSignature = 0xeffeeffe;
  std::string problem;  // lines have no paths then
  stream_ = file.stream(streams.strings, problem);
  if (Cursor(stream_).u32() != kSignature) stream_ = {};
}

std::uint32_t Paths::number(std::uint32_t offset) {
  constexpr std::uint32_t kTexts = 12;
  const auto [known, is_new] = numbers_.try_emplace(offset, code::source::kNone);
  if (!is_new || offset >= stream_.size() || stream_.size() - offset <= kTexts) return known->second;
  Cursor texts(stream_, kTexts + offset, stream_.size());
  const std::string path(texts.text());
  if (!texts.good()) stream_ = {};  // the end of a path was sought in 64 KiB: that happens once
  if (memory_.take(ModuleFiles::kEntryBytes + path.size()))
    known->second = texts_.number(path.c_str(), memory_);
  return known->second;
}

// Each: kind, bytes, and these. The highest bit of a kind says that it is not to be read.
ModuleFiles::ModuleFiles(const Stream& stream, const Module& module, Paths& paths) : paths_(paths) {
  Cursor cursor(stream, module.line_begin, module.line_end);
  while (cursor.left() != 0) {
    const std::uint32_t at = cursor.offset();
    const std::uint32_t kind = cursor.u32();
    const std::uint32_t size = cursor.u32();
    const std::uint32_t begin = cursor.offset();
    cursor.skip(size);
    if (!cursor.good()) {
      problem_ = damage_at(stream.number(), at, "a part of its lines is cut");
      return;
    }
    subsections_.push_back({kind, begin, cursor.offset()});
    if (kind == Subsection::kChecksums && files_.empty())
      read_checksums(Cursor(stream, begin, cursor.offset()));
    cursor.align();
  }
}

// Each: offset of the name, bytes of the checksum, its kind, and itself.
void ModuleFiles::read_checksums(Cursor checksums) {
  const std::uint32_t begin = checksums.offset();
  while (checksums.left() != 0) {
    const File file{checksums.offset() - begin, checksums.u32()};
    const auto size = checksums.next<std::uint8_t>();
    checksums.skip(1);
    checksums.skip(size);
    if (!checksums.good()) return;  // files from there on are not known
    files_.push_back(file);
    checksums.align();
  }
}

std::uint32_t ModuleFiles::path(std::uint32_t offset) const {
  const auto file = std::ranges::lower_bound(files_, offset, {}, &File::offset);
  return file == files_.end() || file->offset != offset ? code::source::kNone : paths_.number(file->name);
}

}  // namespace ptkit::code::pdb
