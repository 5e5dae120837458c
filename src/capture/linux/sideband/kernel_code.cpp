#include "capture/linux/sideband/kernel_code.h"

#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <sstream>

#include "base/addresses.h"
#include "capture/common/errors.h"
#include "capture/linux/files/file_table.h"
#include "capture/linux/process/process.h"
#include "code/image/kallsyms.h"

namespace ptkit::capture {

namespace {

using base::kPageBytes;
constexpr std::uint64_t kMaxGeneratedBytes = std::uint64_t{1} << 16U;
constexpr std::size_t kMostSegments = 4096;
constexpr std::size_t kSavedAtOnce = std::size_t{1} << 20U;
constexpr const char* kKernel = "[kernel]";
constexpr const char* kBpf = "[bpf]";

struct Symbol {
  std::uint64_t address = 0;
  bool is_code = false;
  std::string name;
};

// Symbols by module; "[kernel]": no module.
using Symbols = std::map<std::string, std::vector<Symbol>>;

std::string read_text(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

Symbols read_symbols(const std::string& path) {
  const std::string text = read_text(path);
  Symbols out;
  code::image::KernelSymbols list(text);
  for (code::image::KernelSymbol one; list.next(one);) {
    out[one.module.empty() ? kKernel : std::string(one.module)].push_back(
        {one.address, one.is_code(), std::string(one.name)});
  }
  const auto before = [](const Symbol& a, const Symbol& b) { return a.address < b.address; };
  for (auto& [name, symbols] : out) {
    if (!std::is_sorted(symbols.begin(), symbols.end(), before))
      std::stable_sort(symbols.begin(), symbols.end(), before);
  }
  return out;
}

// Address ranges of modules, by "[name]".
using Modules = std::map<std::string, std::pair<std::uint64_t, std::uint64_t>>;

// Parses lines "ptkit 45056 0 - Live 0xffffffffc0000000 (OE)".
Modules parse_modules(const std::string& text) {
  Modules out;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line);
    std::string name;
    std::uint64_t bytes = 0;
    std::string skipped;
    std::string address;
    if (!(words >> name >> bytes >> skipped >> skipped >> skipped >> address) || address.size() < 3) continue;
    std::uint64_t begin = 0;
    std::from_chars(address.data() + 2, address.data() + address.size(), begin, 16);
    if (begin != 0) out["[" + name + "]"] = {begin, begin + bytes};
  }
  return out;
}

// Adds the symbols of a part. Symbols are sorted by address.
void add_symbols(KernelCode::Part& part, const std::vector<Symbol>& symbols) {
  const auto first =
      std::lower_bound(symbols.begin(), symbols.end(), part.begin,
                       [](const Symbol& symbol, std::uint64_t address) { return symbol.address < address; });
  for (auto i = static_cast<std::size_t>(first - symbols.begin()); i < symbols.size(); ++i) {
    const Symbol& symbol = symbols[i];
    if (symbol.address >= part.end) break;
    if (!symbol.is_code) continue;
    std::uint64_t next = part.end;
    for (std::size_t j = i + 1; j < symbols.size() && next == part.end; ++j) {
      if (symbols[j].address > symbol.address) next = std::min(symbols[j].address, part.end);
    }
    part.symbols.push_back({symbol.name, symbol.address - part.begin, next - symbol.address});
  }
}

std::optional<std::uint64_t> address_of(const std::vector<Symbol>& symbols, std::string_view name) {
  const auto at = std::find_if(symbols.begin(), symbols.end(),
                               [name](const Symbol& symbol) { return symbol.name == name; });
  return at == symbols.end() || at->address == 0 ? std::optional<std::uint64_t>() : at->address;
}

// A module's code comes first in its memory. Its data begins on a page of its own.
std::uint64_t end_of_code(const std::vector<Symbol>& symbols, std::uint64_t begin, std::uint64_t end) {
  std::uint64_t last = begin;
  for (const Symbol& symbol : symbols) {
    if (symbol.is_code && symbol.address < end) last = std::max(last, symbol.address);
  }
  std::uint64_t code_end = end;
  for (const Symbol& symbol : symbols) {
    if (!symbol.is_code && symbol.address > last) code_end = std::min(code_end, symbol.address);
  }
  const std::uint64_t page_end = (last / kPageBytes + 1) * kPageBytes;
  return std::min(end, std::max(code_end / kPageBytes * kPageBytes, page_end));
}

// The end of generated code. Symbols of kallsyms have no sizes, and unrelated data may follow. A trampoline
// of ftrace and a page of kprobes take one page each. A BPF program ends at the next one, if that is near and
// no module lies in between. Otherwise only the first page certainly belongs to the program.
std::uint64_t end_of_generated(const std::string& name, std::uint64_t first, std::uint64_t next,
                               const Modules& modules) {
  const std::uint64_t begin = first / kPageBytes * kPageBytes;
  const std::uint64_t page_end = begin + kPageBytes;
  if (name != kBpf || next < page_end || next - begin > kMaxGeneratedBytes) return page_end;
  std::uint64_t end = next / kPageBytes * kPageBytes;
  for (const auto& [module, range] : modules) {
    if (range.first >= page_end) end = std::min(end, range.first / kPageBytes * kPageBytes);
  }
  return end;
}

// Converts "ptkit.ko", "snd-hda.ko.xz" and "vmlinux" to names of the kernel.
std::string module_name(std::string name) {
  name = base_name(name);
  if (!name.empty() && name.front() == '[') return name;
  name = name.substr(0, name.find(".ko"));
  if (name == "vmlinux" || name == "kernel") return kKernel;
  std::replace(name.begin(), name.end(), '-', '_');
  return "[" + name + "]";
}

// INT3, or memory that was freed: the kernel fills code with the former when it ends.
bool is_filler(std::uint8_t byte) noexcept { return byte == 0xcc || byte == 0; }

std::int32_t file_of(BundleOutput& output, const KernelCode::Part& part) {
  return output.file(part.name, [&] { return trace::ImageFile{part.name, {}, {}, part.symbols}; });
}

}  // namespace

// /proc/kcore is an ELF file. Its segments are kernel memory.
class KernelCode::Memory {
 public:
  explicit Memory(const std::string& path) : file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    Elf64_Ehdr header{};
    if (!read_at(0, &header, sizeof header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return;
    segments_.resize(std::min<std::size_t>(header.e_phnum, kMostSegments));
    if (!read_at(header.e_phoff, segments_.data(), segments_.size() * sizeof(Elf64_Phdr))) segments_.clear();
  }

  // Reads the whole range, or returns nothing.
  [[nodiscard]] std::vector<std::uint8_t> read(std::uint64_t begin, std::uint64_t end) const {
    for (const Elf64_Phdr& segment : segments_) {
      if (segment.p_type != PT_LOAD || begin < segment.p_vaddr || end - segment.p_vaddr > segment.p_filesz)
        continue;
      std::vector<std::uint8_t> out(end - begin);
      if (read_at(segment.p_offset + (begin - segment.p_vaddr), out.data(), out.size())) return out;
    }
    return {};
  }

 private:
  bool read_at(std::uint64_t offset, void* to, std::size_t bytes) const {
    auto* at = static_cast<std::uint8_t*>(to);
    while (bytes != 0) {
      const ssize_t got = ::pread(file_.get(), at, bytes, static_cast<off_t>(offset));
      if (got <= 0) return false;
      at += got;
      offset += static_cast<std::uint64_t>(got);
      bytes -= static_cast<std::size_t>(got);
    }
    return true;
  }

  Fd file_;
  std::vector<Elf64_Phdr> segments_;
};

// Code that the kernel generates at run time (ftrace, kprobes, BPF).
void KernelCode::add_pages(const std::string& name, std::uint64_t first, std::uint64_t end) {
  const std::uint64_t begin = first / kPageBytes * kPageBytes;
  if (!parts_.empty() && parts_.back().name == name && parts_.back().end > begin) return;
  parts_.push_back({name, begin, end, {}});
}

void KernelCode::add_ksymbol(BundleOutput& output, std::uint64_t tsc, const std::string& name,
                             std::uint64_t begin, std::uint64_t end) {
  if (begin >= end || end - begin > kMaxGeneratedBytes) return;
  static_cast<void>(save_part(output, Memory(files_.memory), {"[" + name + "]", begin, end, {}}, tsc));
}

// The bytes before the first change are valid from the beginning of the recording.
void KernelCode::text_poke(BundleOutput& output, std::uint64_t tsc, std::uint64_t address, base::Bytes before,
                           base::Bytes after) {
  const auto region = [address](base::Bytes bytes) {
    trace::CodeRegion out;
    out.address = address;
    out.size = bytes.size();
    out.bytes = trace::TraceBuffer::from_vector({bytes.begin(), bytes.end()});
    return out;
  };
  std::vector<trace::CodeRegion> regions;
  if (poked_.insert(address).second && !before.empty()) {
    regions.push_back(region(before));
    regions.back().tsc_to = tsc;
  }
  if (!after.empty()) {
    regions.push_back(region(after));
    regions.back().tsc_from = tsc;
  }
  output.code(regions);
  for (Saved& one : saved_) {
    if (address < one.begin || address - one.begin + after.size() > one.bytes.size()) continue;
    std::copy(after.begin(), after.end(),
              one.bytes.begin() + static_cast<std::ptrdiff_t>(address - one.begin));
  }
}

std::optional<base::Failure> KernelCode::find_parts() {
  parts_.clear();
  modules_ = read_text(files_.modules);
  const Symbols symbols = read_symbols(files_.symbols);
  const auto own = symbols.find(kKernel);
  const auto begin = own == symbols.end() ? std::nullopt : address_of(own->second, "_stext");
  const auto end = own == symbols.end() ? std::nullopt : address_of(own->second, "_etext");
  if (!begin || !end || *end <= *begin) {
    return unsupported("the kernel hides its addresses (" + files_.symbols +
                       "); record as root, with kernel.kptr_restrict at most 1 and without kernel lockdown");
  }
  parts_.push_back({kKernel, *begin, *end, {}});
  add_symbols(parts_.back(), own->second);
  const auto modules = parse_modules(modules_);
  for (const auto& [name, list] : symbols) {
    if (name == kKernel || modules.count(name) != 0) continue;
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (!list[i].is_code) continue;
      const std::size_t before = parts_.size();
      const std::uint64_t next = i + 1 < list.size() ? list[i + 1].address : 0;
      add_pages(name, list[i].address, end_of_generated(name, list[i].address, next, modules));
      if (parts_.size() != before) add_symbols(parts_.back(), list);
    }
  }
  for (const auto& [name, range] : modules) {
    const auto at = symbols.find(name);
    if (at == symbols.end()) continue;
    parts_.push_back({name, range.first, end_of_code(at->second, range.first, range.second), {}});
    add_symbols(parts_.back(), at->second);
  }
  return {};
}

bool KernelCode::modules_changed() const {
  return parse_modules(read_text(files_.modules)) != parse_modules(modules_);
}

void KernelCode::save_names(BundleOutput& output) const {
  for (const Part& part : parts_) static_cast<void>(file_of(output, part));
}

// Returns false if the code cannot be read.
bool KernelCode::save_part(BundleOutput& output, const Memory& memory, const Part& part, std::uint64_t tsc,
                           const std::function<void()>& on_progress) {
  const auto saved =
      std::find_if(saved_.begin(), saved_.end(), [&](const Saved& one) { return one.begin == part.begin; });
  if (saved != saved_.end() && saved->name == part.name) return true;
  std::vector<std::uint8_t> bytes = memory.read(part.begin, part.end);
  if (bytes.empty()) bytes = memory.read(part.begin, part.begin + kPageBytes);
  if (bytes.empty()) return false;
  const auto overlaps = [&](const Saved& one) {
    return one.begin < part.begin + bytes.size() && part.begin < one.begin + one.bytes.size();
  };
  trace::CodeRegion region;
  // Code over no other code is valid at all times, as times of rows are not exact.
  if (std::any_of(saved_.begin(), saved_.end(), overlaps)) region.tsc_from = tsc;
  region.file = file_of(output, part);
  const trace::TraceBuffer all = trace::TraceBuffer::from_vector(bytes);
  for (std::size_t at = 0; at < all.size(); at += kSavedAtOnce) {
    region.bytes = all.slice(at, std::min(kSavedAtOnce, all.size() - at));
    region.address = part.begin + at;
    region.size = region.bytes.size();
    region.file_offset = at;
    output.code({region});
    on_progress();
  }
  if (saved != saved_.end()) saved_.erase(saved);  // the old part was removed, and its address reused
  saved_.push_back({part.name, part.begin, std::move(bytes)});
  return true;
}

std::optional<base::Failure> KernelCode::save(BundleOutput& output, std::uint64_t tsc,
                                              const std::function<void()>& on_progress) {
  const Memory memory(files_.memory);
  for (const Part& part : parts_) {
    // An unreadable part other than kernel text was removed meanwhile.
    if (save_part(output, memory, part, tsc, on_progress) || part.name != kKernel) continue;
    return unsupported("the kernel's code cannot be read (" + files_.memory +
                       "); record as root, and without kernel lockdown");
  }
  return {};
}

bool KernelCode::has_code(std::uint64_t address) const noexcept {
  return std::any_of(saved_.begin(), saved_.end(), [address](const Saved& one) {
    return address >= one.begin && address - one.begin < one.bytes.size();
  });
}

std::vector<std::uint64_t> KernelCode::save_pages(BundleOutput& output,
                                                  const std::set<std::uint64_t>& addresses) const {
  const Memory memory(files_.memory);
  std::vector<std::uint64_t> gone;
  for (auto at = addresses.begin(); at != addresses.end();) {
    const std::uint64_t page = *at / kPageBytes * kPageBytes;
    const std::vector<std::uint8_t> bytes = memory.read(page, page + kPageBytes);
    bool there = !bytes.empty();
    for (; at != addresses.end() && *at - page < kPageBytes; ++at)
      there = there && !is_filler(bytes[static_cast<std::size_t>(*at - page)]);
    if (!there) gone.push_back(page);
    if (!bytes.empty()) output.code(unsaved_regions(page, bytes));
  }
  return gone;
}

// The runs of a page that no saved code has.
std::vector<trace::CodeRegion> KernelCode::unsaved_regions(std::uint64_t page,
                                                           const std::vector<std::uint8_t>& bytes) const {
  std::vector<trace::CodeRegion> out;
  for (std::size_t begin = 0; begin < bytes.size();) {
    std::size_t end = begin;
    while (end < bytes.size() && !has_code(page + end)) ++end;
    if (end == begin) {
      ++begin;
      continue;
    }
    trace::CodeRegion& region = out.emplace_back();
    region.address = page + begin;
    region.size = end - begin;
    const auto first = bytes.begin() + static_cast<std::ptrdiff_t>(begin);
    region.bytes = trace::TraceBuffer::from_vector({first, first + static_cast<std::ptrdiff_t>(end - begin)});
    begin = end;
  }
  return out;
}

std::size_t KernelCode::changed_pages() const {
  const Memory memory(files_.memory);
  std::size_t changed = 0;
  for (const Saved& one : saved_) {
    const std::vector<std::uint8_t> now = memory.read(one.begin, one.begin + one.bytes.size());
    if (now.size() != one.bytes.size()) continue;
    for (std::size_t at = 0; at < now.size(); at += kPageBytes) {
      const std::size_t part = std::min<std::size_t>(kPageBytes, now.size() - at);
      changed += std::memcmp(now.data() + at, one.bytes.data() + at, part) != 0 ? 1U : 0U;
    }
  }
  return changed;
}

const KernelCode::Part* KernelCode::find_part(const std::string& module) const {
  const std::string name = module_name(module);
  const auto at =
      std::find_if(parts_.begin(), parts_.end(), [&](const Part& part) { return part.name == name; });
  return at == parts_.end() ? nullptr : &*at;
}

std::vector<KernelCode::Function> KernelCode::find(const std::string& name, const std::string& module) const {
  const std::string wanted = module.empty() ? std::string() : module_name(module);
  std::vector<Function> out;
  for (const Part& part : parts_) {
    if (!wanted.empty() && part.name != wanted) continue;
    for (const trace::SymbolEntry& symbol : part.symbols) {
      if (symbol.name != name) continue;
      const std::uint64_t first = part.begin + symbol.file_offset;
      out.push_back({first, first + std::max<std::uint64_t>(symbol.size, 1) - 1});
    }
  }
  return out;
}

std::vector<std::string> KernelCode::similar(const std::string& name) const {
  constexpr std::size_t kMost = 3;
  std::vector<std::string> out;
  for (const Part& part : parts_) {
    for (const trace::SymbolEntry& symbol : part.symbols) {
      if (out.size() < kMost && symbol.name.find(name) != std::string::npos) out.push_back(symbol.name);
    }
  }
  return out;
}

}  // namespace ptkit::capture
