// ELF and PE files, and dumps of PE images: segments or sections, ids and symbols, relocated code, and the
// addresses that come of them.
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>

#include "code/image/elf/elf.h"
#include "code/image/files/code_file.h"
#include "code/image/files/contradictions.h"
#include "code/image/files/imports.h"
#include "code/image/pe/pe.h"
#include "code/image/pe/pe_layout.h"
#include "code/symbol/symbols.h"

namespace {

// The loader takes a path: a file in memory has one.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* data, std::size_t size) : fd_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    if (fd_ < 0 || ::write(fd_, data, size) != static_cast<ssize_t>(size)) std::abort();
  }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  ~MemoryFile() { ::close(fd_); }
  [[nodiscard]] std::string path() const { return "/proc/self/fd/" + std::to_string(fd_); }

 private:
  int fd_;
};

// Of a dump, each byte becomes code once.
void check_dump(ptkit::base::Bytes bytes) {
  using namespace ptkit;
  for (const auto& entry : code::image::read_symbols(code::image::as_file(bytes))) {
    if (entry.file_offset >= bytes.size() || entry.name.empty()) std::abort();
  }
  trace::TraceBundle bundle;
  code::image::add_code(bundle, "", trace::TraceBuffer(bytes, nullptr), 0x7000'0000'0000, trace::kAnySpace);
  std::size_t covered = 0;
  for (const auto& region : bundle.code) covered += region.bytes.bytes().size();
  if (covered != bytes.size()) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace ptkit;
  const base::Bytes bytes(data, size);
  (void)code::image::elf_build_id(bytes);
  (void)code::image::other_machine(bytes);
  const std::uint64_t offset = size >= 8 ? base::load_le<8>(data + size - 8) : 0;
  const std::array<code::image::FileMapping, 3> mappings{
      {{.offset = offset & 0xf000, .size = size}, {.offset = offset, .size = ~offset}, {.offset = size}}};
  (void)code::image::mapping_contradiction(bytes, mappings);
  for (const auto& entry : code::image::read_symbols(bytes)) {
    if (entry.file_offset >= size || entry.name.empty()) std::abort();
  }
  const auto slots = code::image::Imports(bytes).encode();
  const auto stored = code::image::Imports::decode(slots);
  if (stored.has_value() != !slots.empty() || (stored && stored->encode() != slots)) std::abort();
  const MemoryFile file(data, size);
  auto bundle = std::make_shared<trace::TraceBundle>();
  code::image::Placement placement;
  if (size % 2 == 1) placement.load_address = 0x7000'0000'0000;
  if (size % 4 == 3) placement.layout = code::image::PeLayout::MEMORY;
  const auto index = code::image::add_image(*bundle, file.path(), placement);
  if (index.ok() == bundle->code.empty()) std::abort();
  for (const auto& region : bundle->code) {
    if (region.bytes.bytes().size() > size) std::abort();
  }
  check_dump(bytes);
  const code::symbol::Symbols symbols(bundle);
  for (const auto& region : bundle->code) {
    (void)symbols.find(trace::kAnySpace, 0, region.address);
    (void)symbols.find(trace::kAnySpace, 0, region.address + region.size - 1);
  }
  for (const auto& region : bundle->code) (void)symbols.import_at(trace::kAnySpace, 0, region.address);
  (void)symbols.similar("main", 3);
  return 0;
}
