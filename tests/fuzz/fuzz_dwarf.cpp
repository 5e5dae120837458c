// Lines, inlined functions and names of debug files: any ELF file, at any address of its code.
#include <cstdlib>

#include "code/image/elf/debug_sections.h"
#include "code/image/elf/elf_file.h"
#include "code/source/dwarf/debug_info.h"
#include "code/source/dwarf/small_names.h"

namespace {

constexpr std::size_t kMostFrames = 1000;

void look_up(const ptkit::code::dwarf::DebugInfo& info, std::uint64_t address) {
  const auto frames = info.frames_at(address);
  if (frames.size() > kMostFrames) std::abort();
  const auto line = ptkit::code::dwarf::LineCursor(info).at(address);
  if (!frames.empty() && frames.front().at.line != line.line) std::abort();
}

void look_up(const ptkit::code::dwarf::DebugInfo& info, const ptkit::code::image::ElfFile& elf) {
  constexpr std::uint64_t kAddresses = 64;
  for (const GElf_Phdr& segment : elf.segments()) {
    const std::uint64_t step = segment.p_memsz / kAddresses + 1;
    for (std::uint64_t i = 0; i < kAddresses; ++i) look_up(info, segment.p_vaddr + i * step);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ptkit;
  const base::Bytes bytes(data, size);
  for (const auto& name : code::dwarf::small_names(bytes)) {
    if (name.name.empty()) std::abort();
  }
  const auto elf = code::image::ElfFile::open(bytes);
  const trace::TraceBuffer file(bytes, nullptr);
  const auto info = code::dwarf::DebugInfo::open(file, [&](const code::dwarf::AltLink&) { return file; });
  if (info == nullptr) return 0;
  if (!elf.ok()) std::abort();
  look_up(*info, elf.value());
  const std::string kept = code::image::debug_sections(bytes);
  const auto alone =
      code::dwarf::DebugInfo::open(trace::TraceBuffer::from_vector({kept.begin(), kept.end()}));
  if (alone != nullptr) look_up(*alone, elf.value());
  return 0;
}
