#include "capture/file_table.h"

#include "image/elf.h"

namespace ptkit::capture {

namespace {

constexpr std::uint64_t kMaxVdsoBytes = 1 << 20;

}  // namespace

trace::TraceBuffer FileTable::contents(pid_t pid, const Mapping& mapping, const Memory& memory) {
  if (mapping.path.front() == '[') {  // "[vdso]": an ELF image that is in memory only
    std::vector<std::uint8_t> bytes(std::min(mapping.end - mapping.begin, kMaxVdsoBytes));
    bytes.resize(memory.read(mapping.begin, bytes));
    return trace::TraceBuffer::from_vector(std::move(bytes));
  }
  // As the program sees it, which may be in another root.
  auto file = trace::TraceBuffer::map_file("/proc/" + std::to_string(pid) + "/root" + mapping.path);
  if (!file.ok()) file = trace::TraceBuffer::map_file(mapping.path);
  return file.ok() ? std::move(file.value()) : trace::TraceBuffer();
}

std::int32_t FileTable::find(pid_t pid, const Mapping& mapping, const Memory& memory) {
  if (mapping.path.empty()) return -1;
  // A 32-bit vDSO is another file than the 64-bit one.
  const bool named = mapping.path.front() == '[';
  const std::string key = named && mapping.end <= 0x100000000 ? mapping.path + "32" : mapping.path;
  const auto [at, fresh] = numbers_.try_emplace(key, static_cast<std::int32_t>(numbers_.size()));
  if (!fresh) return at->second;
  const trace::TraceBuffer bytes = contents(pid, mapping, memory);
  trace::ImageFile file;
  file.path = mapping.path;
  file.build_id = image::elf_build_id(bytes.bytes());
  file.symbols = image::read_symbols(bytes.bytes());
  writer_.file(static_cast<std::uint32_t>(at->second), file);
  return at->second;
}

}  // namespace ptkit::capture
